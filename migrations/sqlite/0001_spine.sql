-- The spine: who owns what, what was said, what was called, what was asked.
-- Ids are text in wire form (SQLite compares bytewise), so that text order is time
-- order. Instants are milliseconds since the epoch. JSON is text on both
-- databases: its key order and every character must come back as written.

create table tenant (
    tenant_id text primary key,
    name text not null unique,
    created_at integer not null
);

create table api_key (
    tenant_id text not null references tenant,
    key_id text not null,
    user_id text not null,
    name text not null,
    hash text not null unique,
    scopes text not null,
    tools text,
    created_at integer not null,
    expires_at integer,
    revoked_at integer,
    primary key (tenant_id, key_id)
);

-- One row for each living server process; turns name it as their owner.
create table process (
    process_id text primary key,
    node_id text not null,
    started_at integer not null,
    expires_at integer not null
);

create table session (
    tenant_id text not null references tenant,
    session_id text not null,
    user_id text not null,
    external_id text,
    title text,
    model text,
    instructions text,
    preset text not null,
    toolsets text not null,
    environment text not null,
    approvals text not null,
    metadata text not null,
    status text not null,
    -- The newest event's number. Updating it is the lock of the session.
    head_seq integer not null,
    -- How many places of the transcript are taken or reserved.
    next_position integer not null,
    active_turn_id text,
    usage text not null,
    todo text not null,
    cwd text,
    node_id text,
    parent_session_id text,
    created_at integer not null,
    updated_at integer not null,
    archived_at integer,
    deleted_at integer,
    primary key (tenant_id, session_id)
);
create unique index session_external_id on session (tenant_id, external_id)
    where external_id is not null and deleted_at is null;

create table turn (
    tenant_id text not null,
    session_id text not null,
    turn_id text not null,
    user_id text not null,
    status text not null,
    stop_reason text,
    input text not null,
    options text not null,
    -- Process that runs the turn; null while parked, queued or ended.
    owner text,
    epoch integer not null,
    step integer not null,
    -- Why the owner is asked to stop; null while it is not.
    cancel_reason text,
    progress text not null,
    usage text not null,
    error text,
    active_ms integer not null,
    active_since integer,
    created_at integer not null,
    started_at integer,
    finished_at integer,
    first_seq integer not null,
    last_seq integer,
    primary key (tenant_id, turn_id)
);
create index turn_of_session on turn (tenant_id, session_id, turn_id);
create index turn_by_owner on turn (owner) where owner is not null;
create index turn_unfinished on turn (status) where status in ('queued', 'running', 'waiting');
-- At most one turn of a session is running or waiting.
create unique index turn_active on turn (tenant_id, session_id) where status in ('running', 'waiting');

create table message (
    tenant_id text not null,
    session_id text not null,
    user_id text not null,
    -- Dense place in the transcript; results of calls have theirs reserved when
    -- the call is proposed, so that they stand in call order.
    position integer not null,
    message_id text not null,
    turn_id text not null,
    role text not null,
    content text not null,
    reasoning text,
    finish_reason text,
    call_id text,
    created_at integer not null,
    primary key (tenant_id, session_id, position)
);
create unique index message_by_id on message (tenant_id, message_id);

create table tool_call (
    tenant_id text not null,
    session_id text not null,
    user_id text not null,
    turn_id text not null,
    call_id text not null,
    -- The assistant message that made the call names the batch.
    message_id text not null,
    batch_index integer not null,
    position integer not null,
    name text not null,
    provider_id text not null,
    arguments_raw text not null,
    arguments text not null,
    edited text,
    effect text not null,
    segment integer not null,
    parallel integer not null,
    status text not null,
    exit_code integer,
    created_at integer not null,
    started_at integer,
    finished_at integer,
    primary key (tenant_id, call_id)
);
create index tool_call_of_turn on tool_call (tenant_id, turn_id, position);
create index tool_call_of_session on tool_call (tenant_id, session_id, position);

create table approval (
    tenant_id text not null,
    session_id text not null,
    turn_id text not null,
    call_id text,
    approval_id text not null,
    user_id text not null,
    kind text not null,
    status text not null,
    batch_id text,
    batch_index integer not null,
    tool text,
    title text not null,
    arguments text not null,
    cwd text,
    backend text not null,
    findings text not null,
    choices text not null,
    digest text not null,
    requester text not null,
    reviewer text not null,
    requested_at integer not null,
    expires_at integer,
    on_expiry text not null,
    decision text,
    primary key (tenant_id, approval_id)
);
create index approval_of_turn on approval (tenant_id, turn_id, approval_id);
create index approval_of_session on approval (tenant_id, session_id, approval_id);
create index approval_due on approval (expires_at) where status = 'pending' and expires_at is not null;

create table standing_grant (
    tenant_id text not null,
    grant_id text not null,
    user_id text not null,
    -- Null for a grant of scope `always`.
    session_id text,
    scope text not null,
    tool text not null,
    backend text not null,
    keys text not null,
    exact text,
    approval_id text,
    created_by text not null,
    created_at integer not null,
    revoked_at integer,
    uses integer not null,
    last_used_at integer,
    primary key (tenant_id, grant_id)
);
create index grant_of_session on standing_grant (tenant_id, session_id);

create table event (
    tenant_id text not null,
    session_id text not null,
    user_id text not null,
    seq integer not null,
    turn_id text,
    epoch integer not null,
    type text not null,
    at integer not null,
    data text not null,
    primary key (tenant_id, session_id, seq)
);
create index event_of_turn on event (tenant_id, session_id, turn_id, seq);
