-- What calls made: results too long for the model, and files of the workspace.
create table artifact (
    tenant_id text collate "C" not null,
    artifact_id text collate "C" not null,
    session_id text collate "C" not null,
    user_id text not null,
    turn_id text collate "C" not null,
    call_id text collate "C" not null,
    tool text not null,
    name text not null,
    media_type text not null,
    size bigint not null,
    -- SHA-256 of the content, in hexadecimal.
    sha256 text not null,
    -- Of a file it is in the workspace, at the path.
    content text,
    path text,
    created_at bigint not null,
    primary key (tenant_id, artifact_id)
);

create index artifact_of_session on artifact (tenant_id, session_id, artifact_id);

select raise_wall('artifact');
