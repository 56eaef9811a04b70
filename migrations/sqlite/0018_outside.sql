-- What the turns of a session may take together, as JSON; beside what is
-- configured.
alter table session add column budget text not null default '{}';

-- The name of a message where it comes from. A session takes each name once.
alter table message add column external_id text;
create unique index message_external on message (tenant_id, session_id, external_id) where external_id is not null;

-- A model call that was counted stays as it was counted.
create trigger usage_stays before delete on usage begin
    select raise(abort, 'counted model calls are never deleted');
end;
create trigger usage_does_not_change before update on usage begin
    select raise(abort, 'counted model calls are never changed');
end;
