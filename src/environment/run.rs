//! One `exec` process seen from the server: start, order, output, report.
//!
//! The server never signals the command itself. It asks the process to stop by
//! closing the socket between them, which also happens when the server dies.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::bubblewrap;
use super::command::{Attendance, Chunk, EnvironmentError, Finished, Mechanism};
use super::exec::description::{Confinement, Report};
use super::exec::kill_below;
use super::terminal::{self, Terminal};

/// How long the process may take to report after it was told to stop, or after
/// the command's own time is over.
const REPORT_PATIENCE: Duration = Duration::from_secs(9);
/// How long output is still read after the end was reported; something that
/// resisted may hold the pipe open. The original's idle time.
const DRAIN: Duration = Duration::from_millis(300);
/// As much as one pipe holds.
const READ_BYTES: usize = 64 << 10;

/// What the process said at the end.
pub(super) struct Ended {
    pub(super) exit_code: i32,
    pub(super) timed_out: bool,
    pub(super) interrupted: bool,
    pub(super) survived: bool,
    pub(super) cwd: Option<PathBuf>,
}

impl Ended {
    /// Of a command that was stopped so early that nothing ran.
    fn before_it_began() -> Self {
        Self {
            exit_code: 130,
            timed_out: false,
            interrupted: true,
            survived: false,
            cwd: None,
        }
    }

    pub(super) fn finished(self, began: Instant) -> Finished {
        Finished {
            exit_code: self.exit_code,
            timed_out: self.timed_out,
            interrupted: self.interrupted,
            survived: self.survived,
            cwd: self.cwd,
            duration: began.elapsed(),
        }
    }
}

/// One `exec` process and its three channels.
#[derive(Debug)]
pub(super) struct Run {
    process: Child,
    stdout: Stream<ChildStdout>,
    stderr: Stream<ChildStderr>,
    /// In the place of both, where the command has one.
    terminal: Option<Terminal>,
    attendance: Option<Attendance>,
    reports: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    /// Closing it tells the process to stop.
    orders: Option<OwnedWriteHalf>,
    group: Option<Pid>,
    patience: Duration,
    /// Which walls stand, in the process's words.
    pub(super) isolation: String,
}

impl Run {
    pub(super) fn start(
        program: &Path,
        confinement: &Confinement,
        with_terminal: bool,
    ) -> Result<Self, EnvironmentError> {
        let command = match confinement.mechanism {
            Mechanism::Landlock | Mechanism::None => tokio::process::Command::new(program),
            Mechanism::Bubblewrap => wrapped(program, confinement)?,
        };
        Self::spawn(command, with_terminal).map_err(EnvironmentError::Spawn)
    }

    pub(super) fn attended_by(&mut self, attendance: Attendance) {
        self.patience = REPORT_PATIENCE + attendance.grace;
        self.attendance = Some(attendance);
    }

    fn spawn(mut command: tokio::process::Command, with_terminal: bool) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        command
            .arg("exec")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)));
        let terminal = if with_terminal {
            let (terminal, theirs) = terminal::pair()?;
            command
                .stdout(Stdio::from(theirs.try_clone()?))
                .stderr(Stdio::from(theirs));
            Some(terminal)
        } else {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            None
        };
        let mut process = command.spawn()?;
        // It holds the other side of the terminal; ours must not stay open.
        drop(command);
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        if terminal.is_none() && (stdout.is_none() || stderr.is_none()) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(Self {
            process,
            stdout: Stream::new(stdout),
            stderr: Stream::new(stderr),
            terminal,
            attendance: None,
            reports: BufReader::new(reports).lines(),
            orders: Some(orders),
            group: None,
            patience: REPORT_PATIENCE,
            isolation: String::new(),
        })
    }

    /// Whether the process still waits for its order.
    pub(super) fn is_there(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// From the order to the end of the whole tree: [`Run::follow`] with it.
    pub(super) async fn accompany(
        &mut self,
        frame: &[u8],
        limit: Duration,
        mut output: impl FnMut(Chunk) + Send,
        cancel: &CancellationToken,
    ) -> Result<Ended, EnvironmentError> {
        if cancel.is_cancelled() {
            return Ok(Ended::before_it_began());
        }
        if let Err(error) = self.order(frame).await {
            self.kill();
            self.drain(&mut output).await;
            return Err(error);
        }
        self.follow(limit, output, cancel).await
    }

    /// Lets a shell that waits run its script; whether it does. Where it does not,
    /// nothing ran, and the process is gone.
    pub(super) async fn go(&mut self, frame: &[u8], cancel: &CancellationToken) -> Result<bool, EnvironmentError> {
        if !self.is_there() || self.order(frame).await.is_err() {
            return Ok(false);
        }
        let line = tokio::select! {
            line = timeout(self.patience, self.reports.next_line()) => line,
            // Whoever follows it sees that too, and ends it.
            () = cancel.cancelled() => return Ok(true),
        };
        let line = line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match &line {
            Ok(Some(text)) if ran_nothing(text) => Ok(false),
            _ => self.hear(line).map(|_| true),
        }
    }

    /// From the start to the end of the whole tree.
    pub(super) async fn follow(
        &mut self,
        limit: Duration,
        mut output: impl FnMut(Chunk) + Send,
        cancel: &CancellationToken,
    ) -> Result<Ended, EnvironmentError> {
        let mut deadline = Instant::now() + limit + self.patience;
        let mut cancelled = false;
        let mut typed = self.attendance.as_mut().and_then(|attendance| attendance.typed.take());
        let mut unsent = Bytes::new();
        loop {
            tokio::select! {
                Some(bytes) = terminal::next(&self.terminal) => output(Chunk::Stdout(bytes)),
                Some(bytes) = terminal::typed(&mut typed), if unsent.is_empty() => unsent = bytes,
                sent = terminal::send(&self.terminal, &unsent), if !unsent.is_empty() => {
                    drop(unsent.split_to(sent.min(unsent.len())));
                }
                Some(bytes) = self.stdout.next() => output(Chunk::Stdout(bytes)),
                Some(bytes) = self.stderr.next() => output(Chunk::Stderr(bytes)),
                line = self.reports.next_line() => {
                    if let Some(ended) = self.hear(line).transpose() {
                        self.drain(&mut output).await;
                        return ended;
                    }
                }
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.orders = None;
                    deadline = deadline.min(Instant::now() + self.patience);
                }
                () = sleep_until(deadline) => {
                    self.kill();
                    let exit_code = if cancelled { 130 } else { 124 };
                    let ended =
                        Ended { exit_code, timed_out: !cancelled, interrupted: cancelled, survived: true, cwd: None };
                    return Ok(ended);
                }
            }
        }
    }

    /// Sends an order; its outcome is not waited for.
    pub(super) async fn order(&mut self, frame: &[u8]) -> Result<(), EnvironmentError> {
        let Some(orders) = &mut self.orders else {
            return Err(EnvironmentError::Lost);
        };
        match timeout(self.patience, orders.write_all(frame)).await {
            Ok(sent) => sent.map_err(EnvironmentError::Spawn),
            Err(_) => Err(EnvironmentError::Spawn(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Takes in one line of the process; the end comes back.
    fn hear(&mut self, line: io::Result<Option<String>>) -> Result<Option<Ended>, EnvironmentError> {
        let report = line.ok().flatten().and_then(|line| serde_json::from_str(&line).ok());
        match report {
            Some(Report::Started { group, isolation }) => {
                self.group = group.and_then(Pid::from_raw);
                if let Some(attendance) = self.attendance.take() {
                    let number = group
                        .and_then(|group| u32::try_from(group).ok())
                        .or_else(|| self.process.id());
                    // Who asked may be gone; the command is ended then.
                    let _ = attendance.started.send(number);
                }
                self.isolation = isolation;
                Ok(None)
            }
            Some(Report::Ended {
                exit_code,
                timed_out,
                interrupted,
                survived,
                cwd,
            }) => Ok(Some(Ended {
                exit_code,
                timed_out,
                interrupted,
                survived,
                cwd,
            })),
            // Only one that was cancelled meanwhile comes here.
            Some(Report::Spoiled) => Ok(Some(Ended::before_it_began())),
            Some(Report::Failed { reason }) => Err(EnvironmentError::Unavailable { reason }),
            None => {
                self.kill();
                Err(EnvironmentError::Lost)
            }
        }
    }

    /// The last resort, when the process itself does not answer any more.
    fn kill(&mut self) {
        if let Some(pid) = self.process.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            kill_below(pid);
        }
        // Both may be gone already, which is what is wanted.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.process.start_kill());
    }

    /// Passes on what is still in the pipes. The process leaves right after its
    /// report, and the runtime reaps it.
    async fn drain(&mut self, output: &mut (impl FnMut(Chunk) + Send)) {
        let mut deadline = Instant::now() + DRAIN;
        loop {
            let chunk = timeout_at(deadline, async {
                tokio::select! {
                    Some(bytes) = terminal::next(&self.terminal) => Some(Chunk::Stdout(bytes)),
                    Some(bytes) = self.stdout.next() => Some(Chunk::Stdout(bytes)),
                    Some(bytes) = self.stderr.next() => Some(Chunk::Stderr(bytes)),
                    else => None,
                }
            });
            let Ok(Some(chunk)) = chunk.await else { break };
            output(chunk);
            deadline = Instant::now() + DRAIN;
        }
    }
}

/// Whether a shell that waited says that it did not go on. Why it could not be
/// started ahead, whoever starts it in the ordinary way will hear.
fn ran_nothing(line: &str) -> bool {
    matches!(serde_json::from_str(line), Ok(Report::Spoiled | Report::Failed { .. }))
}

fn wrapped(program: &Path, confinement: &Confinement) -> Result<tokio::process::Command, EnvironmentError> {
    let Some(bubblewrap) = bubblewrap::find() else {
        return Err(EnvironmentError::Unavailable {
            reason: "bubblewrap is not installed".into(),
        });
    };
    // A link into `/proc` would mean bubblewrap itself in there.
    let program = program.canonicalize().map_err(EnvironmentError::Spawn)?;
    let mut command = tokio::process::Command::new(bubblewrap);
    command.args(bubblewrap::arguments(&program, confinement));
    Ok(command)
}

/// One of the command's outputs, until it ends.
#[derive(Debug)]
struct Stream<R> {
    source: Option<R>,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(source: Option<R>) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
        }
    }

    /// The next piece; `None` at the end and ever after. Losing the future loses
    /// no bytes.
    async fn next(&mut self) -> Option<Bytes> {
        let source = self.source.as_mut()?;
        self.buffer.reserve(READ_BYTES);
        match source.read_buf(&mut self.buffer).await {
            Ok(bytes) if bytes > 0 => Some(self.buffer.split().freeze()),
            _ => {
                self.source = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process in the place of ours that does not behave.
    fn misbehaving(script: &str) -> Run {
        let mut command = tokio::process::Command::new("/bin/sh");
        command.args(["-c", script]);
        let mut run = Run::spawn(command, false).unwrap();
        run.patience = Duration::from_millis(100);
        run
    }

    #[tokio::test]
    async fn a_cancel_returns_in_bounded_time_though_nothing_answers() {
        let mut run = misbehaving("echo running; trap '' TERM; sleep 300");
        let cancel = CancellationToken::new();
        let output = |_| cancel.cancel();
        let ended = run
            .accompany(b"", Duration::from_secs(60), output, &cancel)
            .await
            .unwrap();
        assert!(ended.interrupted && ended.survived && !ended.timed_out);
        assert_eq!(ended.exit_code, 130);
        // It was killed, though not politely.
        assert!(!run.process.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn a_time_out_returns_in_bounded_time_though_nothing_answers() {
        let mut run = misbehaving("sleep 300");
        let ended = run
            .accompany(b"", Duration::ZERO, |_| {}, &CancellationToken::new())
            .await
            .unwrap();
        assert!(ended.timed_out && ended.survived && !ended.interrupted);
        assert_eq!(ended.exit_code, 124);
    }

    #[tokio::test]
    async fn a_process_that_leaves_without_a_report_is_an_error_that_keeps_its_words() {
        let mut run = misbehaving("echo why >&2; exit 3");
        let mut said = Vec::new();
        let output = |chunk: Chunk| said.extend_from_slice(chunk.bytes());
        let ended = run
            .accompany(b"", Duration::from_secs(60), output, &CancellationToken::new())
            .await;
        assert!(matches!(ended, Err(EnvironmentError::Lost)));
        assert_eq!(said, b"why\n");
    }
}
