-- What a model that reviews approvals said, where one was asked.
alter table approval add column review text;
