//! Tools: what a round of calls adds to a turn, rounds per second, and how soon
//! an answer to an approval shows.

use anyhow::Result;

use crate::floor;
use crate::report::quantile;
use crate::scenes::{Scene, TEXT};
use crate::server::Server;

/// Five rounds of one command each, of different texts: the same one again and
/// again is taken for a loop.
pub(crate) const ROUNDS: &str = "/tool terminal {\"command\": \"true 1\"}\n/then\n\
    /tool terminal {\"command\": \"true 2\"}\n/then\n/tool terminal {\"command\": \"true 3\"}\n/then\n\
    /tool terminal {\"command\": \"true 4\"}\n/then\n/tool terminal {\"command\": \"true 5\"}\n/then\n/tokens 50 0";
const COUNT: f64 = 5.0;
/// One round of eight commands; commands follow one another.
const COMMANDS: &str = "/tool terminal {\"command\": \"true 1\"}\n/tool terminal {\"command\": \"true 2\"}\n\
    /tool terminal {\"command\": \"true 3\"}\n/tool terminal {\"command\": \"true 4\"}\n\
    /tool terminal {\"command\": \"true 5\"}\n/tool terminal {\"command\": \"true 6\"}\n\
    /tool terminal {\"command\": \"true 7\"}\n/tool terminal {\"command\": \"true 8\"}\n/then\n/tokens 50 0";
/// Files, without and with a round of eight reads of them, which run together.
const FILES: &str = "/tool terminal {\"command\": \"for n in 1 2 3 4 5 6 7 8; do echo $n > f$n; done\"}\n/then\n\
    /tokens 50 0";
const READS: &str = "/tool terminal {\"command\": \"for n in 1 2 3 4 5 6 7 8; do echo $n > f$n; done\"}\n/then\n\
    /tool read_file {\"path\": \"f1\"}\n/tool read_file {\"path\": \"f2\"}\n/tool read_file {\"path\": \"f3\"}\n\
    /tool read_file {\"path\": \"f4\"}\n/tool read_file {\"path\": \"f5\"}\n/tool read_file {\"path\": \"f6\"}\n\
    /tool read_file {\"path\": \"f7\"}\n/tool read_file {\"path\": \"f8\"}\n/then\n/tokens 50 0";
pub(crate) const ASKS: &str = "/tool terminal {\"command\": \"rm -rf build\"}";

impl Scene<'_> {
    /// `commit` is what one commit takes; a round has two, and its commands.
    pub(crate) async fn tools(&mut self, server: &Server, commit: f64) -> Result<()> {
        let count = (self.size.alone / 4).max(8);
        let shell = quantile(floor::shells().await?.into_iter(), 0.5);
        self.add("floor: one shell command without walls, p50", "ms", shell);
        let mut wholes = Vec::new();
        for input in [TEXT, ROUNDS, COMMANDS, FILES, READS] {
            let sessions = server.client.sessions(count).await?;
            let load = server.client.load(input, 1, sessions).await?;
            wholes.push(quantile(load.turns.iter().map(|turn| turn.whole), 0.5));
        }
        if let [text, rounds, commands, files, reads] = wholes.as_slice() {
            let two = 2.0 * commit;
            self.against(
                "tool round (shell `true`), p50",
                "ms",
                (rounds - text) / COUNT,
                shell + two,
            );
            self.against("round of eight reads together, p50", "ms", reads - files, two);
            let in_sequence = 8.0 * shell + 9.0 * commit;
            self.against(
                "round of eight commands in sequence, p50",
                "ms",
                commands - text,
                in_sequence,
            );
        }
        for at_once in [1, 8] {
            let sessions = server.client.sessions(count).await?;
            let load = server.client.load(ROUNDS, at_once, sessions).await?;
            let rounds = count as f64 * COUNT / load.took.as_secs_f64();
            self.add(format!("{at_once} at once: tool rounds (shell command)"), "1/s", rounds);
        }
        let mut told = Vec::new();
        for session in server.client.sessions(count).await? {
            told.push(server.client.allowed(&session, ASKS).await?);
        }
        let told = quantile(told.into_iter(), 0.5);
        self.against("approval answered until next event, p50", "ms", told, commit);
        Ok(())
    }
}
