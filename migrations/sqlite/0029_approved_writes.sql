-- What a change that was let in comes to, until it is on the disk.
alter table pending_write add column approved text;
