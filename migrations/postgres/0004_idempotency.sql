-- What came of a request that a client gave a key of its own, written in the
-- transaction of its effect. Older than a day, a row is as good as none.
create table idempotency (
    tenant_id text collate "C" not null,
    -- User and API key.
    caller text not null,
    route text not null,
    idempotency_key text not null,
    -- SHA-256 of the body, in hex.
    body_hash text not null,
    answer text not null,
    created_at bigint not null,
    primary key (tenant_id, caller, route, idempotency_key)
);
create index idempotency_by_age on idempotency (created_at);

select raise_wall('idempotency');
