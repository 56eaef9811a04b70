//! Secrets in text that arrives in pieces, masked before a piece goes on: a word
//! is held back until it has ended, since only then it is known to be no secret,
//! and a private key until its last line.
//!
//! Whoever sees the pieces sees them late by a word, and never half a secret.

use super::{Known, KnownStream, Mode, output_mode, redact};

/// The longest word that is held back whole.
const LONGEST_WORD: usize = 16 * 1024;
/// The longest private key.
const LONGEST_KEY: usize = 64 * 1024;
/// Of the line that goes on this much is kept, to know what stands before a word.
const LONGEST_LINE: usize = 4 * 1024;

const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";

/// One stream of text.
#[derive(Debug)]
pub struct Stream {
    mode: Mode,
    /// What has come and did not go on yet.
    held: String,
    /// What went on of the line that is not over, as it came.
    line: String,
    /// A key that is too long to be held is left out up to its end.
    skipping: bool,
    /// The server's own secrets are masked last.
    known: KnownStream,
}

impl Stream {
    /// Of the output of a command.
    pub fn of_output(command: &str, known: &Known) -> Self {
        Self {
            mode: output_mode(command),
            held: String::new(),
            line: String::new(),
            skipping: false,
            known: known.stream(),
        }
    }

    /// What can go on now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.skipping && !self.skip() {
            return String::new();
        }
        let cut = self.cut();
        let shown = self.emit(cut);
        self.known.push(&shown)
    }

    /// What is left when nothing more comes.
    pub fn finish(mut self) -> String {
        let mut shown = String::new();
        if !self.skipping || self.skip() {
            let rest = self.emit(self.held.len());
            shown = self.known.push(&rest);
        }
        shown.push_str(&self.known.finish());
        shown
    }

    /// Leaves a long key out; whether it is over.
    fn skip(&mut self) -> bool {
        let Some(at) = self.held.find(KEY_ENDS) else {
            // The mark of the end may have come in part.
            let keep = self.held.len().saturating_sub(KEY_ENDS.len());
            let keep = self.held.floor_char_boundary(keep);
            self.held.drain(..keep);
            return false;
        };
        self.held.drain(..at);
        self.skipping = false;
        true
    }

    /// Up to where it is known what stands there.
    fn cut(&mut self) -> usize {
        let word = self.held.rfind(char::is_whitespace).map_or(0, |at| {
            let next = self.held.get(at..).and_then(|rest| rest.chars().next());
            at + next.map_or(1, char::len_utf8)
        });
        let word = match self.held.len() - word {
            length if length <= LONGEST_WORD => word,
            // No secret is as long as this; the end of it may begin one.
            _ => self.held.floor_char_boundary(self.held.len() - LONGEST_LINE),
        };
        let Some(key) = self.open_key() else { return word };
        if self.held.len() - key <= LONGEST_KEY {
            return word.min(key);
        }
        self.held.truncate(key);
        self.held.push_str("***\n");
        self.skipping = true;
        self.held.len()
    }

    /// Where a private key begins whose end has not come.
    fn open_key(&self) -> Option<usize> {
        let begin = self.held.rfind(KEY_BEGINS)?;
        let rest = self.held.get(begin..)?;
        let (first, more) = rest.split_once('\n').unwrap_or((rest, ""));
        let may_be_key = !first.contains("-----\n") && (first.contains("PRIVATE KEY") || more.is_empty());
        // The last line names the key, in words of its own.
        let is_over = more
            .split_once(KEY_ENDS)
            .is_some_and(|(_, end)| end.contains(['-', '\n']));
        (may_be_key && !is_over).then_some(begin)
    }

    fn emit(&mut self, cut: usize) -> String {
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        if ready.is_empty() {
            return ready;
        }
        let shown = self.masked(&ready);
        self.line.push_str(&ready);
        let begin = self.line.rfind('\n').map_or(0, |at| at + 1);
        let begin = begin.max(
            self.line
                .ceil_char_boundary(self.line.len().saturating_sub(LONGEST_LINE)),
        );
        self.line.drain(..begin);
        shown
    }

    /// The text as it may be shown behind what went on of its line.
    fn masked(&self, ready: &str) -> String {
        let plain = match ready.contains('\u{1b}') {
            true => strip_ansi_escapes::strip_str(ready),
            false => ready.to_owned(),
        };
        let before = redact(&self.line, self.mode);
        let all = redact(&format!("{}{plain}", self.line), self.mode);
        let masked = match all.strip_prefix(&before) {
            Some(masked) => masked.to_owned(),
            // What follows changed what stands before, which is gone.
            None => redact(&plain, self.mode),
        };
        // Colours stay where they hide nothing.
        if masked == plain { ready.to_owned() } else { masked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(pieces: &[&str], command: &str) -> String {
        let mut stream = Stream::of_output(command, &Known::default());
        let mut all: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        all.push_str(&stream.finish());
        all
    }

    fn token() -> String {
        ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat()
    }

    #[test]
    fn a_secret_is_masked_however_it_is_cut() {
        let text = format!(
            "first line\ntoken {} and\nauthorization: Bearer abcdefghijklmnopqrstuvwx\nlast",
            token()
        );
        let whole = redact(&text, Mode::Code);
        assert!(!whole.contains("0123456789") && !whole.contains("ghijklmnop"));
        for at in 0..=text.len() {
            let (one, two) = text.split_at(at);
            assert_eq!(streamed(&[one, two], "cat x"), whole, "{at}");
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(streamed(&letters, "cat x"), whole);
        assert_eq!(
            streamed(&["MY_TOK", "EN=hunter2", "hunter2\n"], "env"),
            "MY_TOKEN=***\n"
        );
    }

    #[test]
    fn a_private_key_is_held_until_it_is_over() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(20);
        let key = format!(
            "-----BEGIN {0}-----\n{body}-----END {0}-----\n",
            ["PRIVATE", "KEY"].join(" ")
        );
        let text = format!("a\n{key}b\n");
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        let shown = streamed(&letters, "cat x");
        assert!(
            !shown.contains("MIIE") && shown.starts_with("a\n") && shown.ends_with("b\n"),
            "{shown}"
        );
        let endless = key.replace(&body, &body.repeat(200));
        let shown = streamed(&["x\n", &endless[..40_000], &endless[40_000..], "\nafter\n"], "cat x");
        assert!(!shown.contains("MIIE") && shown.ends_with("after\n"), "{}", shown.len());
    }

    #[test]
    fn what_is_no_secret_passes_as_it_came() {
        let text = "\u{1b}[1mred\u{1b}[0m ok\nprogress 10%\rprogress 20%\n한글 words\n";
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (one, two) = text.split_at(at);
            assert_eq!(streamed(&[one, two], "make"), text);
        }
        let long = "x".repeat(100_000);
        assert_eq!(streamed(&[&long], "make"), long);
    }

    #[test]
    fn colours_do_not_part_a_secret() {
        let token = token();
        let (one, two) = token.split_at(9);
        let shown = streamed(&[&format!("{one}\u{1b}[0m"), &format!("{two}\n")], "cat x");
        assert!(!shown.contains(&two[5..20]), "{shown}");
    }

    #[test]
    fn base64_is_looked_into() {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("token {}\n", token()));
        let wrapped: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        for text in [
            encoded.clone(),
            wrapped.join("\n"),
            format!("data:text/plain;base64,{encoded}"),
        ] {
            let shown = redact(&text, Mode::Code);
            assert!(!shown.contains(&encoded[10..30]) && shown.contains("***"), "{shown}");
        }
        let harmless = base64::engine::general_purpose::STANDARD.encode("nothing to see here, move along");
        assert_eq!(redact(&harmless, Mode::Code), harmless);
        assert_eq!(
            redact("src/guard/redact/encoded/and/more.rs", Mode::Code),
            "src/guard/redact/encoded/and/more.rs"
        );
    }
}
