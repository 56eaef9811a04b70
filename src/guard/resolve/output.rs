//! What a command prints, when that can be read off its text: `echo`,
//! `printf`, `cat` of a literal, decoders. Also the facts that a pipeline
//! carries from stage to stage.

use base64::Engine as _;

use super::Value;
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::shell::decode_ansi_c;

/// Literal output longer than this is not followed.
const LONGEST: usize = 32 * 1024;

/// What a pipeline stage hands on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feed {
    pub(crate) text: Option<String>,
    pub(crate) fetched: bool,
    pub(crate) decoded: Option<Decoder>,
    /// A secret file or the environment was read.
    pub(crate) secret: Option<Span>,
    /// A tool printed a stored secret; to use one is no harm, to send it is.
    pub(crate) printed: Option<Span>,
    /// The output names secret files.
    pub(crate) named: Option<Span>,
    /// A shell that takes commands from elsewhere speaks.
    pub(crate) shell: Option<Span>,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    Base,
    Hex,
    Translate,
    Openssl,
    Other,
}

impl Feed {
    pub(crate) fn after(self, before: &Self) -> Self {
        Self {
            text: self.text,
            fetched: self.fetched || before.fetched,
            decoded: self.decoded.or(before.decoded),
            secret: self.secret.or(before.secret),
            printed: self.printed.or(before.printed),
            named: self.named.or(before.named),
            shell: self.shell.or(before.shell),
            span: Span {
                start: before.span.start.min(self.span.start),
                end: self.span.end.max(before.span.end),
            },
        }
    }
}

pub(crate) fn literal_output(call: &Call) -> Option<String> {
    let input = || call.input_text().map(|(text, _)| text);
    let text = match call.name.as_str() {
        "echo" => echo(&call.args)?,
        "printf" => printf(&call.args)?,
        "cat" | "tee"
            if call
                .operands()
                .next()
                .is_none_or(|arg| call.name == "tee" || arg.text == "-") =>
        {
            input()?.to_owned()
        }
        "dd" if !call.args.iter().any(|arg| arg.text.starts_with("if=")) => input()?.to_owned(),
        // What the shell would find is known by its name.
        "which" | "realpath" => known(&call.args)?.last().copied()?.to_owned(),
        "command" if call.short('v').is_some() => known(&call.args)?.last().copied()?.to_owned(),
        "type" if call.short('p').or(call.short('P')).is_some() => known(&call.args)?.last().copied()?.to_owned(),
        "base64" | "gbase64" if decodes(call) => decode_base64(input()?)?,
        "xxd" if call.short('r').is_some() => decode_hex(input()?)?,
        "rev" if call.args.is_empty() => input()?
            .lines()
            .map(|line| line.chars().rev().collect::<String>())
            .collect::<Vec<_>>()
            .join("\n"),
        "tr" => translate(call, input()?)?,
        _ => return None,
    };
    // Shells drop NUL from what they read.
    let text = if text.contains('\0') {
        text.replace('\0', "")
    } else {
        text
    };
    (text.len() <= LONGEST).then_some(text)
}

pub(crate) fn decodes(call: &Call) -> bool {
    call.short('d').is_some() || call.short('D').is_some() || call.long("decode", 1).is_some()
}

fn echo(args: &[Value]) -> Option<String> {
    let mut words = args;
    let mut escapes = false;
    let mut newline = true;
    while let Some((first, rest)) = words.split_first() {
        let flags = first.text.strip_prefix('-').filter(|flags| !flags.is_empty());
        let Some(flags) = flags.filter(|flags| flags.bytes().all(|flag| matches!(flag, b'n' | b'e' | b'E'))) else {
            break;
        };
        escapes |= flags.contains('e');
        newline &= !flags.contains('n');
        words = rest;
    }
    let text = known(words)?.join(" ");
    let mut text = if escapes { decode_ansi_c(&text) } else { text };
    if newline {
        text.push('\n');
    }
    Some(text)
}

fn known(args: &[Value]) -> Option<Vec<&str>> {
    args.iter().map(|arg| arg.known.then_some(arg.text.as_str())).collect()
}

/// `%s`, `%b`, `%d`, `%c` and `%%`; the format is used again while arguments
/// are left.
fn printf(args: &[Value]) -> Option<String> {
    let args = known(args)?;
    let args = args.strip_prefix(&["--"]).unwrap_or(&args);
    let (format, values) = args.split_first()?;
    if format.starts_with('-') {
        return None;
    }
    let format = format.replace("\\%", "%");
    let mut values = values.iter().copied();
    let mut text = String::new();
    loop {
        let left = values.len();
        print_once(&format, &mut values, &mut text)?;
        if values.len() == 0 || values.len() == left || text.len() > LONGEST {
            return Some(text);
        }
    }
}

fn print_once<'v>(format: &str, values: &mut impl Iterator<Item = &'v str>, text: &mut String) -> Option<()> {
    // A `%` that an escape stands for is one, and begins nothing.
    let mut pieces = format.split('%');
    text.push_str(&decode_ansi_c(pieces.next().unwrap_or_default()));
    while let Some(piece) = pieces.next() {
        let mut rest = piece.chars();
        let Some(directive) = rest.next() else {
            // Two in a row.
            text.push('%');
            text.push_str(&decode_ansi_c(pieces.next()?));
            continue;
        };
        match directive {
            's' | 'd' | 'i' | 'q' => text.push_str(values.next().unwrap_or_default()),
            'b' => text.push_str(&decode_ansi_c(values.next().unwrap_or_default())),
            'c' => text.extend(values.next().unwrap_or_default().chars().take(1)),
            // Widths and the rest of the zoo are not followed.
            _ => return None,
        }
        text.push_str(&decode_ansi_c(rest.as_str()));
    }
    Some(())
}

fn decode_base64(text: &str) -> Option<String> {
    let compact: String = text
        .chars()
        .filter(|character| !character.is_whitespace() && *character != '=')
        .collect();
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD.decode(compact).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn decode_hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|digit| digit.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| {
            pair.iter()
                .fold(0_u32, |value, digit| value * 16 + digit)
                .try_into()
                .unwrap_or_default()
        })
        .collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn translate(call: &Call, input: &str) -> Option<String> {
    if call.short('d').is_some() {
        let unwanted = set(&call.operands().next()?.text);
        return Some(
            input
                .chars()
                .filter(|character| !unwanted.contains(character))
                .collect(),
        );
    }
    let mut operands = call.operands();
    let (from, to) = (set(&operands.next()?.text), set(&operands.next()?.text));
    let last = to.last().copied()?;
    let change = |character: char| match from.iter().position(|wanted| *wanted == character) {
        Some(at) => to.get(at).copied().unwrap_or(last),
        None => character,
    };
    Some(input.chars().map(change).collect())
}

/// The characters of a `tr` set: escapes and ranges.
fn set(text: &str) -> Vec<char> {
    let plain: Vec<char> = decode_ansi_c(text).chars().take(512).collect();
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = plain.get(at) {
        match (plain.get(at + 1), plain.get(at + 2)) {
            (Some('-'), Some(last)) if last >= first && last.is_ascii() => {
                all.extend(*first..=*last);
                at += 3;
            }
            _ => {
                all.push(*first);
                at += 1;
            }
        }
    }
    all
}
