//! The readers at the border, with inputs made up by chance and with those that
//! fuzzing found worth keeping.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// Pieces that the forms at the border are made of.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\u0000",
    "\\ud800",
    "\\",
    "null",
    "true",
    "1",
    "-1",
    "1e9",
    "0.5",
    "limit",
    "after",
    "status",
    "session_id",
    "since",
    "metadata",
    "metadata[",
    "]",
    "metadata.",
    "=",
    "&",
    "%00",
    "%FF",
    "%5B",
    "%",
    "+",
    ";",
    "q=",
    "NaN",
    "*/*",
    "text/event-stream",
    "application/json",
    "W/",
    "*",
    "ses_",
    "turn_",
    "01jz8m4s7ye2tv6m0c9w3kq5rd",
    "2026-01-31",
    "9999-12-31",
    "0000-01-01",
    "T",
    "23:59:60",
    "00:00:00",
    ".000",
    "Z",
    "-23:59",
    "+23:59",
    "hst_",
    "hsk_",
    "AAAA",
    ".",
    "turn.*",
    "http://",
    "localhost",
    "[::1]",
    "@",
    "é",
    "\u{0}",
    " ",
    "\n",
    "\u{fffd}",
    "type",
    "session",
    "kty",
    "keys",
];

fn formed() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..12);
    (any::<u8>(), pieces).prop_map(|(reader, pieces)| [&[reader], pieces.concat().as_bytes()].concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_by_each_reader(data in prop::collection::vec(any::<u8>(), 0..200)) {
        for reader in 0..READERS {
            read(&[&[reader], data.as_slice()].concat());
        }
    }

    #[test]
    fn what_looks_right_is_read_or_refused(input in formed()) {
        read(&input);
    }

    #[test]
    fn any_id_has_one_text(bits in any::<u128>()) {
        let text = SessionId::from_bits(bits).to_string();
        prop_assert_eq!(text.parse(), Ok(SessionId::from_bits(bits)));
        prop_assert!(text.to_uppercase().parse::<SessionId>().is_err());
    }

    #[test]
    fn any_instant_of_a_calendar_can_be_sent_back(
        date in (prop_oneof![Just(0u16), Just(9999), 0..=9999u16], prop_oneof![Just(1u8), Just(12)], prop_oneof![Just(1u8), Just(31)]),
        time in (0..24u8, 0..60u8, 0..=60u8),
        offset in (prop::bool::ANY, 0..24u8, 0..60u8),
    ) {
        let ((year, month, day), (hour, minute, second), (ahead, hours, minutes)) = (date, time, offset);
        let sign = if ahead { '+' } else { '-' };
        let text = format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{hours:02}:{minutes:02}"
        );
        super::time(&text);
    }

    #[test]
    fn any_json_is_read_as_the_standard_reader_does(value in value()) {
        let text = serde_json::to_vec(&value).unwrap();
        let read = json::value(&text, &Cell::new(10_000)).unwrap();
        let cleaned: Value = serde_json::from_str(&String::from_utf8(text).unwrap().replace("\\u0000", "\u{fffd}")).unwrap();
        prop_assert_eq!(read, cleaned);
    }

    #[test]
    fn any_cut_of_a_body_is_refused(value in value(), share in 0.0..1.0f64) {
        let text = json!({"x": value}).to_string();
        let cut = (text.len() as f64 * share) as usize;
        prop_assert!(json::value(&text.as_bytes()[..cut], &Cell::new(10_000)).is_err());
    }

    #[test]
    fn entries_of_the_metadata_are_found_however_they_are_written(
        key in "[a-z\\[\\]. é]{1,8}", value in ".{0,8}", in_brackets in any::<bool>(),
    ) {
        let name = if in_brackets { format!("metadata[{key}]") } else { format!("metadata.{key}") };
        let mut written = url::form_urlencoded::Serializer::new(String::new());
        let text = written.append_pair(&name, &value).append_pair("limit", "7").finish();
        let query::WithMetadata(filter, entries) = query::parse_with_metadata::<Filter>(&text).unwrap();
        prop_assert_eq!(filter.limit.count(), 7);
        let value = value.replace('\0', "\u{fffd}");
        prop_assert_eq!(entries.into_iter().collect::<Vec<_>>(), vec![(key, value)]);
    }

    #[test]
    fn a_quality_of_nought_is_never_chosen(kinds in prop::collection::vec(
        (prop::sample::select(&["text/event-stream", "text/plain", "application/json"][..]), 0..=10u8), 1..4,
    )) {
        let text: Vec<String> = kinds.iter().map(|(kind, tenths)| match tenths {
            10 => (*kind).to_owned(),
            tenths => format!("{kind};q=0.{tenths}"),
        }).collect();
        let headers = headers(&[ACCEPT], text.join(", ").as_bytes()).unwrap();
        let best = kinds.iter().map(|(_, tenths)| *tenths).max().unwrap();
        let first = kinds.iter().find(|(_, tenths)| *tenths == best && 0 < best);
        let wanted = accept::wanted(&headers).ok().map(|wanted| format!("{wanted:?}"));
        let expected = first.map(|(kind, _)| match *kind {
            "text/event-stream" => "Stream",
            "text/plain" => "Text",
            _ => "Json",
        });
        prop_assert_eq!(wanted.as_deref(), expected);
    }

    #[test]
    fn a_token_with_one_bit_changed_says_nothing(place in any::<prop::sample::Index>(), bit in 0..8u32) {
        let pass = stream_token::Pass {
            subject: stream_token::Subject::Tenant,
            tenant: TenantId::from_bits(1),
            user: "ada".to_owned(),
            whole_tenant: true,
            key: None,
            until: None,
            expires_at: Timestamp(5),
        };
        let key = Secret::new("s");
        let token = stream_token::write(&key, &pass).unwrap();
        let mut bytes = token.expose().as_bytes().to_vec();
        bytes[place.index(token.expose().len())] ^= 1 << bit;
        let changed = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(stream_token::read(&key, &changed).unwrap(), None);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z\\x00\"\\\\é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,4}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What the fuzzer starts from, and what it found, once each.
#[test]
fn the_corpus_of_the_fuzz_target_is_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/border");
    let mut readers = [0; READERS as usize];
    for file in std::fs::read_dir(&corpus).unwrap() {
        let input = std::fs::read(file.unwrap().path()).unwrap();
        readers[usize::from(input[0] % READERS)] += 1;
        read(&input);
    }
    assert!(
        readers.iter().all(|count| 0 < *count),
        "a reader without an example: {readers:?}"
    );
}
