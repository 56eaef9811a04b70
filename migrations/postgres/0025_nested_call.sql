-- Calls that a program of the model makes while it runs (`execute_code`). They
-- are no part of the transcript, so their results stand here.
create table nested_call (
    tenant_id text collate "C" not null,
    session_id text collate "C" not null,
    user_id text collate "C" not null,
    turn_id text collate "C" not null,
    call_id text collate "C" not null,
    parent_call_id text collate "C" not null,
    message_id text collate "C" not null,
    batch_index bigint not null,
    name text not null,
    arguments text not null,
    edited text,
    effect text not null,
    status text not null,
    exit_code bigint,
    result text,
    created_at bigint not null,
    started_at bigint,
    finished_at bigint,
    primary key (tenant_id, call_id)
);
create index nested_call_of_parent on nested_call (tenant_id, parent_call_id, batch_index);
create index nested_call_of_session on nested_call (tenant_id, session_id);

select raise_wall('nested_call');
