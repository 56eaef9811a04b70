//! Which of the server's own variables commands see: those that the operator
//! names, or whose skills want them, and never a credential of the server's.

use crate::config;
use crate::model::skill::SkillOrigin;
use crate::tool::skill::library::Library;

/// Credentials of the server itself, which no setting can pass on.
const OWN_CREDENTIALS: &[&str] = &[
    "DATABASE_URL",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "API_SERVER_KEY",
    "PGPASSWORD",
];

/// What the sandbox sets itself, so that no skill brings the server's in its place.
const OF_THE_SANDBOX: [&str; 9] = [
    "PATH", "HOME", "TMPDIR", "PWD", "USER", "LOGNAME", "SHELL", "LANG", "TERM",
];

/// The variables that skills of the operator's want. A tenant's own skill says
/// nothing about what the server gives away.
pub(super) fn wanted_by_skills(skills: &config::Skills) -> Vec<String> {
    let library = Library {
        system: skills.external_dirs.clone(),
        disabled: skills.disabled.clone(),
        ..Library::default()
    };
    let listed = library.list().unwrap_or_default();
    let listed = listed
        .iter()
        .filter(|skill| skill.is_available() && skill.origin == SkillOrigin::System);
    let wanted = listed.flat_map(|skill| &skill.document.variables);
    let names = wanted.map(|variable| variable.name.clone());
    names.filter(|name| !OF_THE_SANDBOX.contains(&name.as_str())).collect()
}

pub(super) fn passed_on(variables: &[(String, String)], names: &[String]) -> Vec<(String, String)> {
    let is_own = |name: &str| name.starts_with("HERMES_") || OWN_CREDENTIALS.contains(&name);
    let is_passed = |name: &String| names.contains(name) && !is_own(name);
    variables.iter().filter(|(name, _)| is_passed(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_variables_pass_and_the_servers_own_never() {
        let variable = |name: &str| (name.to_owned(), "v".to_owned());
        let all = ["GOPATH", "OPENAI_API_KEY", "HERMES_API_KEY", "OTHER"].map(variable);
        let names = ["GOPATH", "OPENAI_API_KEY", "HERMES_API_KEY"].map(str::to_owned);
        assert_eq!(passed_on(&all, &names), [variable("GOPATH")]);
    }
}
