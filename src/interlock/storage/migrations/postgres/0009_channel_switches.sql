-- since: 2
-- Channels belong to workspaces, and so does whether one is off. Programs from before go on with `switches`.

create table channel_switches (            -- channels that are off, because their other side said so
    workspace text collate "C" not null,
    channel   text collate "C" not null,
    off_at    bigint not null,
    why       text collate "C" not null,
    primary key (workspace, channel)
);

insert into channel_switches (workspace, channel, off_at, why) select 'default', channel, off_at, why from switches;
