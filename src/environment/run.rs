//! One `exec` process seen from the server: start, order, output, report.
//!
//! The server never signals the command itself. It asks the process to stop by
//! closing the socket between them, which also happens when the server dies.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::bubblewrap;
use super::command::{Attendance, Chunk, EnvironmentError, Finished, Mechanism};
use super::exec::description::{Confinement, Report};
use super::exec::{kill_below, outputs};
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
    pub(super) left_over: bool,
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
            left_over: false,
            survived: false,
            cwd: None,
        }
    }

    /// The process may be given another command.
    pub(super) fn is_plain(&self) -> bool {
        !self.timed_out && !self.interrupted && !self.survived
    }

    pub(super) fn finished(self, began: Instant) -> Finished {
        Finished {
            exit_code: self.exit_code,
            timed_out: self.timed_out,
            interrupted: self.interrupted,
            left_over: self.left_over,
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
    stdout: Stream<Receiver>,
    stderr: Stream<Receiver>,
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
        let (terminal, stdout, stderr) = if with_terminal {
            let (terminal, theirs) = terminal::pair()?;
            command
                .stdout(Stdio::from(theirs.try_clone()?))
                .stderr(Stdio::from(theirs));
            (Some(terminal), Stream::ended(), Stream::ended())
        } else {
            let ((stdout, of_output), (stderr, of_error)) = (Stream::piped()?, Stream::piped()?);
            command.stdout(of_output).stderr(of_error);
            (None, stdout, stderr)
        };
        let process = command.spawn()?;
        // It holds the other sides; ours must not stay open.
        drop(command);
        Ok(Self {
            process,
            stdout,
            stderr,
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

    /// Whether what was ordered of a process that may be about to leave, or may find
    /// things changed, begins. Where it does not, nothing ran, and the process is gone.
    pub(super) async fn has_begun(&mut self, cancel: &CancellationToken) -> Result<bool, EnvironmentError> {
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
                    return Ok(Ended {
                        exit_code,
                        timed_out: !cancelled,
                        interrupted: cancelled,
                        left_over: false,
                        survived: true,
                        cwd: None,
                    });
                }
            }
        }
    }

    /// Orders another command of a process whose last one ended plainly, with outputs
    /// of its own.
    pub(super) async fn order_again(&mut self, frame: &[u8]) -> Result<(), EnvironmentError> {
        let Some(orders) = &self.orders else {
            return Err(EnvironmentError::Lost);
        };
        let pipes = Stream::piped().and_then(|stdout| Ok((stdout, Stream::piped()?)));
        let ((stdout, of_output), (stderr, of_error)) = pipes.map_err(EnvironmentError::Spawn)?;
        let ready = timeout(self.patience, orders.writable()).await;
        ready
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(EnvironmentError::Spawn)?;
        let handed = orders.as_ref().try_io(Interest::WRITABLE, || {
            outputs::hand_over(orders.as_ref(), &[of_output.as_fd(), of_error.as_fd()])
        });
        handed.map_err(EnvironmentError::Spawn)?;
        (self.stdout, self.stderr, self.group) = (stdout, stderr, None);
        self.order(frame).await
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
                left_over,
                survived,
                cwd,
            }) => Ok(Some(Ended {
                exit_code,
                timed_out,
                interrupted,
                left_over,
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

impl Stream<Receiver> {
    /// A new pipe, and the side that is written to.
    fn piped() -> io::Result<(Self, PipeWriter)> {
        let (ours, theirs) = io::pipe()?;
        let source = Receiver::from_owned_fd(ours.into())?;
        let stream = Self {
            source: Some(source),
            ..Self::ended()
        };
        Ok((stream, theirs))
    }
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn ended() -> Self {
        Self {
            source: None,
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
