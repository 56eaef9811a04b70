-- Processes that a session runs in the background, as far as they are known when
-- their server is gone.
create table background (
    tenant_id text not null,
    background_id text not null,
    session_id text not null,
    user_id text not null,
    turn_id text not null,
    call_id text not null,
    -- The server that runs it.
    owner text not null,
    command text not null,
    cwd text not null,
    pid integer,
    terminal integer not null,
    notify integer not null,
    -- JSON list of texts.
    patterns text not null,
    started_at integer not null,
    -- exited, killed, lost; nothing while it runs.
    completion text,
    exit_code integer,
    finished_at integer,
    primary key (tenant_id, background_id)
);

create index background_by_session on background (tenant_id, session_id, background_id);

-- What a server left when it went is looked for by its name.
create index background_running on background (owner) where completion is null;
