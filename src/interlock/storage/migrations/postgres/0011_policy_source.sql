-- since: 2
-- Whether a version of a policy is the text of a file that a process was started with, or was put there by a person.

alter table policies add column source text collate "C" not null default 'person';

update policies set source = 'file' where author = 'configuration';
