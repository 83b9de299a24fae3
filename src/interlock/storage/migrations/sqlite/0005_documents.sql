-- since: 2
-- Documents that agents can search and read: files of the folders in the configuration, in passages.

create table documents (                   -- one row for each file; what is shown of it are the passages of `version`
    workspace text not null,
    path      text not null,
    stamp     text not null,               -- size and time of the file that it was made of
    version   text not null,
    length    integer not null,            -- in characters
    primary key (workspace, path)
) without rowid;

create table passages (                    -- written first, shown once the row of the document names their version
    doc       integer primary key,
    workspace text not null,
    path      text not null,
    version   text not null,
    start     integer not null,            -- the character of the document at which it begins
    words     text not null
);

create index passages_of on passages (workspace, path, version, start);

create virtual table passages_found using fts5(
    path, words, content = 'passages', content_rowid = 'doc', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Left to itself, the index merges much in one go now and then, and a decision would wait for it.
insert into passages_found (passages_found, rank) values ('crisismerge', 1000);

create trigger passages_added after insert on passages begin
    insert into passages_found (rowid, path, words) values (new.doc, new.path, new.words);
end;

create trigger passages_removed after delete on passages begin
    insert into passages_found (passages_found, rowid, path, words) values ('delete', old.doc, old.path, old.words);
end;
