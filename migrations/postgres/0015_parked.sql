-- Who carries a call out. One that is not the server's own waits as rows only.
alter table tool_call add column execution text not null default 'server';
create index tool_call_handed_over on tool_call (tenant_id, session_id)
    where execution = 'client' and status = 'waiting';

-- Definitions of the tools that the client carries out, as JSON.
alter table session add column tools text not null default '[]';

-- Questions that the model asks a person.
create table question (
    tenant_id text collate "C" not null,
    session_id text collate "C" not null,
    turn_id text collate "C" not null,
    call_id text collate "C" not null,
    question_id text collate "C" not null,
    user_id text collate "C" not null,
    status text not null,
    question text not null,
    choices text not null,
    asked_at bigint not null,
    expires_at bigint,
    answer text,
    primary key (tenant_id, question_id)
);
create index question_of_turn on question (tenant_id, turn_id, question_id);
create index question_of_session on question (tenant_id, session_id, question_id);
create index question_due on question (expires_at) where status = 'pending' and expires_at is not null;

select raise_wall('question');
