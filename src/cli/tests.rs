//! What parses, what does not, and that every subcommand has its examples.

use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;
use crate::config::Flags;
use crate::model::principal::Scope;

fn parse(line: &[&str]) -> Result<Command, clap::Error> {
    Cli::try_parse_from([&["hermes-server"], line].concat()).map(Cli::chosen)
}

#[test]
fn the_definitions_are_sound() {
    Cli::command().debug_assert();
}

#[test]
fn no_subcommand_starts_the_server_with_its_flags() {
    assert_eq!(parse(&[]).unwrap(), Command::Serve(ServeArgs::default()));
    let flags = [
        "--listen",
        "[::1]:1",
        "--data-dir",
        "/d",
        "--database-url",
        "sqlite:x",
        "--config",
        "/c.yaml",
    ]
    .as_slice();
    let Command::Serve(args) = parse(flags).unwrap() else {
        panic!("not serve")
    };
    assert_eq!(
        parse(&[&["serve"], flags].concat()).unwrap(),
        Command::Serve(args.clone())
    );
    assert_eq!(
        Flags::from(args),
        Flags {
            config: Some("/c.yaml".into()),
            listen: Some("[::1]:1".to_owned()),
            data_dir: Some("/d".to_owned()),
            database_url: Some("sqlite:x".to_owned()),
        }
    );
}

#[test]
fn a_key_is_made_with_everyday_scopes_unless_told_otherwise() {
    let Command::Key(KeyCommand::Create(args)) = parse(&["key", "create", "--name", "x"]).unwrap() else {
        panic!("not create")
    };
    assert_eq!((args.tenant.as_str(), args.user.as_str()), ("default", "default"));
    assert_eq!(args.scopes.len(), 5);
    assert!(!args.scopes.contains(&Scope::Admin) && !args.scopes.contains(&Scope::KeysWrite));
    let line = [
        "key",
        "create",
        "--name",
        "x",
        "--scope",
        "admin,audit:read",
        "--scope",
        "keys:write",
        "--expires",
        "2d",
    ];
    let Command::Key(KeyCommand::Create(args)) = parse(&line).unwrap() else {
        panic!("not create")
    };
    assert_eq!(args.scopes, [Scope::Admin, Scope::AuditRead, Scope::KeysWrite]);
    assert_eq!(args.expires, Some(Span(Duration::from_secs(172_800))));
}

#[test]
fn the_other_subcommands_parse() {
    for line in [
        ["migrate", "--data-dir", "/d"].as_slice(),
        &["openapi"],
        &["openapi", "--surface", "native"],
        &["openapi", "--output", "openapi", "--check"],
        &["key", "list", "--json"],
        &["key", "revoke", "key_01jz8m4s7ye2tv6m0c9w3kq5rd"],
        &["check", "rm -rf /"],
        &["check", "-"],
        &["check", "-rf", "--json"],
        &["tools", "--all"],
        &["token", "--tenant", "t", "--user", "u", "--expires", "5m"],
    ] {
        assert!(parse(line).is_ok(), "{line:?}: {}", parse(line).unwrap_err());
    }
}

#[test]
fn a_command_to_check_may_look_like_a_flag_and_flags_stay_flags() {
    for (line, command, json) in [
        (["check", "--json", "ls -l"], "ls -l", true),
        (["check", "ls -l", "--json"], "ls -l", true),
        (["check", "--json", "-rf x"], "-rf x", true),
        (["check", "--json", "-"], "-", true),
    ] {
        let Command::Check(args) = parse(&line).unwrap() else {
            panic!("not check")
        };
        assert_eq!((args.command.as_deref(), args.json), (Some(command), json), "{line:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        ["key", "create"].as_slice(),
        &["key", "create", "--name", "x", "--scope", "everything"],
        &["key", "create", "--name", "x", "--expires", "soon"],
        &["key", "revoke", "ses_01jz8m4s7ye2tv6m0c9w3kq5rd"],
        &["openapi", "--check"],
        &["openapi", "--surface", "native", "--output", "d"],
        &["check"],
        &["token", "--tenant", "t"],
        &["--listen", "a:1", "migrate"],
        &["explode"],
    ] {
        assert!(parse(line).is_err(), "{line:?}");
    }
    let text = parse(&["key", "create", "--name", "x", "--scope", "sessions"])
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("'sessions'") && text.contains("sessions:read, sessions:write"),
        "{text}"
    );
}

#[test]
fn every_subcommand_explains_itself_with_examples() {
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        let line = ["hermes-server", command.get_name(), "--help"];
        let help = Cli::try_parse_from(line).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        assert!(help.to_string().contains("Examples:"), "{}", command.get_name());
    }
}
