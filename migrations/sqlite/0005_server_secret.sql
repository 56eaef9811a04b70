-- What all servers on this database share and nobody else may know.
create table server_secret (
    name text primary key,
    value text not null
);
-- Signs the cursors of lists: 256 random bits.
insert into server_secret (name, value) values ('cursor', lower(hex(randomblob(32))));
