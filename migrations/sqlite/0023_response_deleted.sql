-- When a client deleted the response that a turn is to it. The turn stays: only
-- the surface of responses knows it no more.
alter table turn add column response_deleted_at integer;
