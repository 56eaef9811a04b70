//! Names that the drop-in surfaces give to a turn. They are the turn's own id
//! under another prefix, so nothing has to be remembered, and a foreign one leads
//! nowhere.

use crate::model::id::TurnId;

fn digits(turn: TurnId) -> String {
    let text = turn.to_string();
    text.strip_prefix("turn_").unwrap_or_default().to_owned()
}

fn turn(digits: &str) -> Option<TurnId> {
    format!("turn_{digits}").parse().ok()
}

pub(in crate::api) fn run(id: TurnId) -> String {
    format!("run_{}", digits(id))
}

pub(in crate::api) fn turn_of_run(text: &str) -> Option<TurnId> {
    turn(text.strip_prefix("run_")?)
}

pub(in crate::api) fn completion(id: TurnId) -> String {
    format!("chatcmpl-{}", digits(id))
}

/// A response: a turn, or what follows in it behind an answer that a client gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) struct ResponseId {
    pub turn: TurnId,
    /// Behind this event; 0 is the turn from its beginning.
    pub after: i64,
}

impl std::fmt::Display for ResponseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.after {
            0 => write!(f, "resp_{}", digits(self.turn)),
            after => write!(f, "resp_{}_{after}", digits(self.turn)),
        }
    }
}

impl ResponseId {
    pub(in crate::api) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("resp_")?;
        match rest.split_once('_') {
            None => Some(Self {
                turn: turn(rest)?,
                after: 0,
            }),
            Some((digits, after)) => Some(Self {
                turn: turn(digits)?,
                after: after.parse().ok().filter(|after| 0 < *after)?,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_turn() {
        let id = TurnId::from_bits(77);
        assert_eq!(turn_of_run(&run(id)), Some(id));
        assert_eq!(turn_of_run("run_x"), None);
        assert_eq!(turn_of_run(&id.to_string()), None);
        for after in [0, 12] {
            let response = ResponseId { turn: id, after };
            assert_eq!(ResponseId::parse(&response.to_string()), Some(response));
        }
        for wrong in [
            "resp_",
            "resp_1",
            &format!("{}_0", ResponseId { turn: id, after: 0 }),
            "chatcmpl-1",
        ] {
            assert_eq!(ResponseId::parse(wrong), None, "{wrong}");
        }
    }
}
