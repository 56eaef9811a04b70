-- Where a queued turn stands: by place, then by id. A turn that interrupts goes
-- before all that wait.
alter table turn add column queue_place integer not null default 0;
