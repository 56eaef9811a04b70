-- Events of a turn stand between its first and its last number: no event needs a
-- second entry for that.
drop index event_of_turn;
