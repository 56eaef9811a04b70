-- Calls that a program of the model makes while it runs (`execute_code`). They
-- are no part of the transcript, so their results stand here.
create table nested_call (
    tenant_id text not null,
    session_id text not null,
    user_id text not null,
    turn_id text not null,
    call_id text not null,
    parent_call_id text not null,
    message_id text not null,
    batch_index integer not null,
    name text not null,
    arguments text not null,
    edited text,
    effect text not null,
    status text not null,
    exit_code integer,
    result text,
    created_at integer not null,
    started_at integer,
    finished_at integer,
    primary key (tenant_id, call_id)
);
create index nested_call_of_parent on nested_call (tenant_id, parent_call_id, batch_index);
create index nested_call_of_session on nested_call (tenant_id, session_id);
