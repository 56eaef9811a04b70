//! The answer of a handler that shows images: its words are the result, its images
//! stand beside it.

use crate::model::message::Part;
use crate::tool::Done;

/// Images of one result; all of it is bounded like any answer of a handler.
const MAX_IMAGES: usize = 8;

pub(super) fn shown(content: Vec<Part>, summary: Option<String>) -> Result<Done, String> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            Part::Text { text } => texts.push(text),
            Part::ImageUrl { image_url } => images.push(image_url.url),
        }
    }
    texts.extend(summary);
    if MAX_IMAGES < images.len() {
        let count = images.len();
        return Err(format!(
            "the handler answered with {count} images; expected at most {MAX_IMAGES}"
        ));
    }
    let is_usable = |url: &String| ["https://", "data:image/"].iter().any(|scheme| url.starts_with(scheme));
    if !images.iter().all(is_usable) {
        return Err("the handler answered with an image that has no `https:` or `data:image/` address".to_owned());
    }
    if texts.iter().all(|text| text.trim().is_empty()) {
        if images.is_empty() {
            return Err("the handler answered with neither words nor images".to_owned());
        }
        texts = vec![format!("[{} images]", images.len())];
    }
    Ok(Done {
        result: texts.join("\n\n"),
        images,
        ..Done::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::ImageUrl;

    fn image(url: &str) -> Part {
        Part::ImageUrl {
            image_url: ImageUrl { url: url.to_owned() },
        }
    }

    #[test]
    fn words_and_images_are_told_apart_and_an_image_that_no_model_could_load_is_refused() {
        let done = shown(
            vec![Part::text("a"), image("https://x/1.png"), Part::text("b")],
            Some("a cat".to_owned()),
        );
        let done = done.unwrap();
        assert_eq!(
            (done.result.as_str(), done.images),
            ("a\n\nb\n\na cat", vec!["https://x/1.png".to_owned()])
        );
        let done = shown(vec![image("data:image/png;base64,AA==")], None).unwrap();
        assert_eq!(done.result, "[1 images]");
        for content in [
            vec![image("file:///etc/passwd")],
            vec![image("http://10.0.0.1/x")],
            vec![image("https://x/1.png"); 9],
            vec![Part::text(" ")],
            Vec::new(),
        ] {
            assert!(shown(content, None).is_err());
        }
    }
}
