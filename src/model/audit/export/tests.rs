//! An export that holds, and every way in which one can be spoiled.

use super::*;
use crate::base::Id;
use crate::model::audit::AuditAction;

fn entry(number: u128) -> AuditEntry {
    AuditEntry {
        id: Id::from_bits(number),
        at: Timestamp(1_769_851_800_000),
        action: AuditAction::CallExecuted,
        actor: "ada".to_owned(),
        key_id: None,
        user_id: "ada".to_owned(),
        session_id: Some(Id::from_bits(7)),
        turn_id: None,
        tool_call_id: Some(Id::from_bits(number)),
        approval_id: None,
        grant_id: None,
        target_key_id: None,
        tool: Some("terminal".to_owned()),
        rules: vec!["k".to_owned()],
        verdict: Some("ask".to_owned()),
        decision: None,
        outcome: Some("succeeded".to_owned()),
        exit_code: Some(0),
        fields: Vec::new(),
    }
}

/// Four chained entries, one of them withheld, and one that is not chained.
fn export() -> Vec<String> {
    let tenant = Id::from_bits(1);
    let mut hash = beginning(tenant);
    let mut lines = vec![Line::Head(Head {
        hermes_audit: VERSION,
        tenant_id: tenant,
    })];
    for seq in 1..=4_i64 {
        let entry = entry(seq.unsigned_abs().into());
        let link = link(&hash, seq, &digest(&entry));
        hash = link.hash.clone();
        lines.push(Line::Entry(Box::new(Entry::new(Some(link), entry, seq != 3))));
    }
    lines.push(Line::Entry(Box::new(Entry::new(None, entry(5), true))));
    lines.push(Line::End(End {
        chained: 4,
        unchained: 1,
        head_hash: hash,
        exported_at: Timestamp(1_769_851_900_000),
    }));
    lines.iter().map(Line::text).collect()
}

fn verified(lines: &[String], expected: Option<String>) -> Result<Proof, Broken> {
    let mut verifier = Verifier::new(expected);
    for line in lines {
        verifier.line(line)?;
    }
    verifier.finish()
}

#[test]
fn an_export_proves_its_chain_and_names_its_tail() {
    let proof = verified(&export(), None).unwrap();
    assert_eq!(proof.chained, 4);
    assert_eq!(proof.unchained, [format!("entry `{}`", entry(5).id)]);
    assert_eq!(verified(&export(), Some(proof.head_hash.clone())).unwrap(), proof);
    let other = verified(&export(), Some("00".repeat(32))).unwrap_err();
    assert!(other.what.contains("does not pass"), "{other}");
}

#[test]
fn no_byte_can_be_changed() {
    let lines = export();
    for (place, line) in lines.iter().enumerate() {
        // The instant of the export stands in the last line and proves nothing.
        let end = line.find("exported_at").unwrap_or(line.len());
        for at in 0..end {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else {
                continue;
            };
            let mut spoiled = lines.clone();
            spoiled[place] = changed;
            let broken = verified(&spoiled, None);
            // What is not chained yet is held by its digest alone.
            assert!(broken.is_err(), "line {}, byte {at}: {}", place + 1, spoiled[place]);
        }
    }
}

#[test]
fn no_entry_can_be_dropped_moved_or_doubled_and_the_first_is_named() {
    let lines = export();
    for place in 1..=5 {
        let mut dropped = lines.clone();
        dropped.remove(place);
        let broken = verified(&dropped, None).unwrap_err();
        let first = if place < 4 { place + 1 } else { dropped.len() };
        assert_eq!(broken.line, first as u64, "{broken}");
    }
    for place in 1..5 {
        let mut moved = lines.clone();
        moved.swap(place, place + 1);
        let broken = verified(&moved, None).unwrap_err();
        let first = if place == 4 { 6 } else { place + 1 };
        assert_eq!(broken.line, first as u64, "{broken}");
        let mut doubled = lines.clone();
        doubled.insert(place, lines[place].clone());
        assert_eq!(verified(&doubled, None).unwrap_err().line, place as u64 + 2);
    }
}

#[test]
fn a_cut_is_noticed_wherever_it_is() {
    let lines = export();
    for keep in 0..lines.len() {
        let broken = verified(&lines[..keep], None).unwrap_err();
        assert!(broken.what.contains("cut off"), "{broken}");
        assert_eq!(broken.line, keep as u64 + 1);
    }
    let mut longer = lines.clone();
    longer.push(lines[1].clone());
    assert!(verified(&longer, None).unwrap_err().what.contains("after the end"));
    let headless = verified(&lines[1..], None).unwrap_err();
    assert!(headless.what.contains("no beginning"), "{headless}");
}

#[test]
fn an_end_that_was_written_anew_is_found_by_an_earlier_hash() {
    let mut lines = export();
    let proof = verified(&lines, None).unwrap();
    let Line::Entry(third) = serde_json::from_str(&lines[3]).unwrap() else {
        panic!("an entry")
    };
    let head_hash = third.link.unwrap().hash;
    lines.truncate(4);
    lines.push(
        Line::End(End {
            chained: 3,
            unchained: 0,
            head_hash,
            exported_at: Timestamp(0),
        })
        .text(),
    );
    assert_eq!(verified(&lines, None).unwrap().chained, 3);
    assert!(verified(&lines, Some(proof.head_hash)).is_err());
}
