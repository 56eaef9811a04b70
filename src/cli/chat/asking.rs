//! What a person types: messages, and answers to approvals. Where nobody types,
//! nothing is decided.

use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

use crate::base::text::first_chars;
use crate::cli::print::{self, harmless};
use crate::model::approval::{Approval, Choice};
use crate::model::question::Question;

use super::client::ChatError;

/// So much of the arguments is shown; the rest is named by the digest all the
/// same.
const SHOWN_CHARS: usize = 4_000;

/// The lines of the standard input.
pub(super) struct Lines(tokio::io::Lines<BufReader<Stdin>>);

impl Lines {
    pub(super) fn of_input() -> Self {
        Self(BufReader::new(tokio::io::stdin()).lines())
    }

    /// The next message; a backslash at a line's end joins the next one to it.
    pub(super) async fn message(&mut self) -> Result<Option<String>, ChatError> {
        let mut message = String::new();
        loop {
            let Some(line) = self.line().await? else {
                return Ok((!message.is_empty()).then_some(message));
            };
            match line.strip_suffix('\\') {
                Some(part) => {
                    message.push_str(part);
                    message.push('\n');
                }
                None => return Ok(Some(message + &line)),
            }
        }
    }

    async fn line(&mut self) -> Result<Option<String>, ChatError> {
        self.0.next_line().await.map_err(ChatError::Input)
    }
}

pub(super) enum Answered {
    With(Choice),
    /// The input is at its end.
    Nobody,
}

/// Shows what is asked and reads the answer, again until it is one of those
/// offered.
pub(super) async fn ask(approval: &Approval, lines: &mut Lines) -> Result<Answered, ChatError> {
    print::aside(&shown(approval));
    let offered = offered(approval);
    loop {
        print::aside(&format!("{offered}?"));
        let Some(line) = lines.line().await? else {
            return Ok(Answered::Nobody);
        };
        if let Some(choice) = chosen(&line, &approval.choices) {
            return Ok(Answered::With(choice));
        }
    }
}

/// Shows a question of the model and reads the answer: the number of a choice, or
/// other words. Nothing at the end of the input.
pub(super) async fn question(question: &Question, lines: &mut Lines) -> Result<Option<String>, ChatError> {
    print::aside(&format!("question {}: {}", question.id, harmless(&question.question)));
    for (number, choice) in (1..).zip(&question.choices) {
        print::aside(&format!("  {number}. {}", harmless(choice)));
    }
    loop {
        print::aside("your answer?");
        let Some(line) = lines.line().await? else {
            return Ok(None);
        };
        if !line.trim().is_empty() {
            return Ok(Some(meant(line.trim(), &question.choices)));
        }
    }
}

/// The choice of that number, or the words themselves.
fn meant(line: &str, choices: &[String]) -> String {
    let number: Option<usize> = line.trim_end_matches('.').parse().ok();
    let chosen = number.and_then(|number| choices.get(number.checked_sub(1)?));
    chosen.cloned().unwrap_or_else(|| line.to_owned())
}

/// How to answer later what is left open now.
pub(super) fn leave_question(question: &Question) {
    print::aside(&format!(
        "the turn waits; answer with POST /v1/questions/{}/answer {{\"answer\": \"…\"}}",
        question.id
    ));
}

/// How to decide later what is left open now.
pub(super) fn leave(approval: &Approval) {
    print::aside(&format!(
        "the turn waits; decide with POST /v1/approvals/{}/decision {{\"choice\": \"once\"}}",
        approval.id
    ));
}

fn shown(approval: &Approval) -> String {
    let arguments = approval.arguments.to_string();
    let cut = first_chars(&arguments, SHOWN_CHARS);
    let more = if cut.len() < arguments.len() { " …" } else { "" };
    let findings = approval
        .findings
        .iter()
        .map(|finding| format!("\n  {}", finding.description));
    format!(
        "approval {}: {}\n  {}{more}{}",
        approval.id,
        harmless(&approval.title),
        harmless(cut),
        findings.collect::<String>()
    )
}

fn offered(approval: &Approval) -> String {
    let names: Vec<&str> = approval.choices.iter().map(|choice| choice.name()).collect();
    names.join(" / ")
}

/// The one offered choice that the line begins to spell; an empty line is none.
fn chosen(line: &str, choices: &[Choice]) -> Option<Choice> {
    let word = line.trim().to_lowercase();
    let mut fitting = choices.iter().filter(|choice| choice.name().starts_with(&word));
    match (word.is_empty(), fitting.next(), fitting.next()) {
        (false, Some(choice), None) => Some(*choice),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_choice_where_there_is_one() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        for (line, expected) in [("2", "blue"), ("1.", "red"), ("3", "3"), ("0", "0"), ("green", "green")] {
            assert_eq!(meant(line, &choices), expected);
        }
    }

    #[test]
    fn only_what_is_offered_and_meant_is_an_answer() {
        let all = [Choice::Once, Choice::Session, Choice::Always, Choice::Deny];
        for (line, expected) in [
            ("o", Some(Choice::Once)),
            (" Deny ", Some(Choice::Deny)),
            ("sess", Some(Choice::Session)),
            ("", None),
            ("yes", None),
            ("once more", None),
        ] {
            assert_eq!(chosen(line, &all), expected, "{line:?}");
        }
        assert_eq!(chosen("always", &[Choice::Once, Choice::Deny]), None);
    }
}
