-- Processes that a session runs in the background, as far as they are known when
-- their server is gone.
create table background (
    tenant_id text collate "C" not null,
    background_id text collate "C" not null,
    session_id text collate "C" not null,
    user_id text not null,
    turn_id text collate "C" not null,
    call_id text collate "C" not null,
    -- The server that runs it.
    owner text collate "C" not null,
    command text not null,
    cwd text not null,
    pid bigint,
    terminal bigint not null,
    notify bigint not null,
    -- JSON list of texts.
    patterns text not null,
    started_at bigint not null,
    -- exited, killed, lost; nothing while it runs.
    completion text collate "C",
    exit_code bigint,
    finished_at bigint,
    primary key (tenant_id, background_id)
);

create index background_by_session on background (tenant_id, session_id, background_id);

-- What a server left when it went is looked for by its name.
create index background_running on background (owner) where completion is null;

select raise_wall('background');
