-- What a session is called is its user's own: of two users of a tenant each may
-- have a session of one name, and neither learns of the other's.
drop index session_external_id;
create unique index session_external_id on session (tenant_id, external_id, user_id)
    where external_id is not null and deleted_at is null;
