-- What all servers on this database share and nobody else may know.
create table server_secret (
    name text collate "C" primary key,
    value text not null
);
-- Signs the cursors of lists: 244 random bits, the most that needs no extension.
insert into server_secret (name, value)
values ('cursor', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
