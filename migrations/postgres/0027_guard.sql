-- What a session's prompt says of its project, as of its first answer.
alter table session add column context_block text;
