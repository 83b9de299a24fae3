-- since: 2
-- Channels belong to workspaces, and so does whether one is off. Programs from before go on with `switches`.

create table channel_switches (            -- channels that are off, because their other side said so
    workspace text not null,
    channel   text not null,
    off_at    integer not null,
    why       text not null,
    primary key (workspace, channel)
) without rowid;

insert into channel_switches (workspace, channel, off_at, why) select 'default', channel, off_at, why from switches;
