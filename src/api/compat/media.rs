//! Images that the model names by a tag, `MEDIA:` and an absolute path: clients of
//! the original get them inside the answer, as Markdown with the image in a
//! `data:` URL. Only files of the session's own workspace are shown; any other tag
//! stays as it is.

use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::api::caller::Caller;
use crate::api::native::files;
use crate::api::state::ApiState;
use crate::environment::Workspace;
use crate::model::id::SessionId;
use crate::model::principal::Scope;

const TAG: &str = "MEDIA:";
/// Of one image, as in the original.
const MAX_BYTES: u64 = 5 << 20;
/// More images than these stay tags: an answer is held in memory whole.
const MOST: usize = 4;
const KINDS: [(&str, &str); 6] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
];

/// A text between tags, or the path of an image.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Image { tag: &'a str, path: &'a str },
}

fn kind(path: &str) -> Option<&'static str> {
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    KINDS.iter().find(|(name, _)| *name == ending).map(|(_, kind)| *kind)
}

/// The path of the image that a tag names, and where the tag ends.
fn named(behind: &str) -> Option<(&str, usize)> {
    let quote = behind.chars().next().filter(|first| ['`', '"', '\''].contains(first));
    let from = quote.map_or(0, char::len_utf8);
    let rest = behind.get(from..)?;
    let length = match quote {
        Some(quote) => rest.find(quote)?,
        None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
    };
    let path = rest.get(..length)?;
    (path.starts_with('/') && kind(path).is_some()).then_some((path, from * 2 + length))
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut begun, mut from) = (Vec::new(), 0, 0);
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(TAG)) {
        let at = from + found;
        from = at + TAG.len();
        if let Some((path, length)) = text.get(from..).and_then(named) {
            pieces.push(Piece::Text(text.get(begun..at).unwrap_or_default()));
            let tag = text.get(at..from + length).unwrap_or_default();
            pieces.push(Piece::Image { tag, path });
            from += length;
            begun = from;
        }
    }
    pieces.push(Piece::Text(text.get(begun..).unwrap_or_default()));
    pieces
}

/// The text with the images that it names. What cannot be shown stays a tag.
pub(in crate::api) async fn with_images(state: &ApiState, caller: &Caller, session: SessionId, text: String) -> String {
    let is_reader = caller.require(Scope::SessionsRead).is_ok();
    if !is_reader || !text.contains(TAG) {
        return text;
    }
    let Ok(Some(workspace)) = files::existing(state, caller, session).await else {
        return text;
    };
    let (mut shown, mut images) = (String::new(), 0);
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => shown.push_str(text),
            Piece::Image { tag, path } => match image(&workspace, path).await {
                Some(image) if images < MOST => {
                    images += 1;
                    shown.push_str(&image);
                }
                _ => shown.push_str(tag),
            },
        }
    }
    shown
}

async fn image(workspace: &Workspace, path: &str) -> Option<String> {
    let file = workspace.open_read(Path::new(path)).await.ok()?;
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let count = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (1..=MAX_BYTES)
            .contains(&(count as u64))
            .then(|| STANDARD.encode(&bytes))
    });
    let data = read.await.ok()??;
    let kind = kind(path)?;
    let name = path.rsplit('/').next().unwrap_or_default().replace(['[', ']'], "_");
    Some(format!("![{name}](data:{kind};base64,{data})"))
}

/// The text without its images, whichever way they stand in it: what a client
/// sends back is compared with what the model said.
pub(in crate::api) fn without(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, image)) = rest.split_once("](data:image/") {
        let Some((before, _)) = before.rsplit_once("![") else {
            break;
        };
        let Some((_, behind)) = image.split_once(')') else {
            break;
        };
        kept.push_str(before);
        rest = behind;
    }
    kept.push_str(rest);
    let texts = pieces(&kept).into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Image { .. } => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_an_image_by_an_absolute_path() {
        let image = |tag, path| Piece::Image { tag, path };
        for (text, read) in [
            ("a", vec![Piece::Text("a")]),
            (
                "a MEDIA:/x/y.png b",
                vec![
                    Piece::Text("a "),
                    image("MEDIA:/x/y.png", "/x/y.png"),
                    Piece::Text(" b"),
                ],
            ),
            (
                "MEDIA:`/x/a b.JPG`.",
                vec![
                    Piece::Text(""),
                    image("MEDIA:`/x/a b.JPG`", "/x/a b.JPG"),
                    Piece::Text("."),
                ],
            ),
            ("MEDIA:x.png", vec![Piece::Text("MEDIA:x.png")]),
            ("MEDIA:/etc/passwd", vec![Piece::Text("MEDIA:/etc/passwd")]),
            ("MEDIA:", vec![Piece::Text("MEDIA:")]),
            ("MEDIA:\"/x.png", vec![Piece::Text("MEDIA:\"/x.png")]),
        ] {
            assert_eq!(pieces(text), read, "{text}");
        }
    }

    #[test]
    fn a_text_is_known_again_without_its_images() {
        let said = "See MEDIA:/w/a.png and MEDIA:/w/b.gif there";
        let shown = "See ![a.png](data:image/png;base64,AA==) and MEDIA:/w/b.gif there";
        assert_eq!(without(said), without(shown));
        assert_eq!(
            without("plain ![x](https://a.example/x.png)"),
            "plain ![x](https://a.example/x.png)"
        );
    }
}
