//! Viewers that stop reading while a command writes 50 MB: the turn does not
//! wait for them, and the server keeps nothing for them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::program::{Program, through};
use crate::harness::script::terminal;
use crate::harness::{PATIENCE, Place};

const BYTES: u64 = 50_000_000;
const VIEWERS: usize = 8;
/// What the server may grow by, all viewers together: a page of events and the
/// buffers of a socket for each are far below it, the output of one is above.
const GROWTH_KIB: u64 = 40 * 1024;

/// A line of the server's memory figures, in KiB.
fn memory(program: &Program, name: &str) -> u64 {
    let path = format!("/proc/{}/status", program.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Lets the highest figure begin anew.
fn forget_peak(program: &Program) {
    let path = format!("/proc/{}/clear_refs", program.pid().as_raw_nonzero());
    std::fs::write(path, "5").unwrap();
}

/// A viewer that reads the greeting and nothing more.
async fn stalled(program: &Program, session: &str) -> TcpStream {
    let address = program.base.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /v1/sessions/{session}/stream HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n",
        program.key
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("stream.hello") {
        let mut buffer = [0; 1024];
        let count = socket.read(&mut buffer).await.unwrap();
        read.extend_from_slice(&buffer[..count]);
    }
    socket
}

/// Runs the command to the end of its turn.
async fn flood(program: &Program, session: &str) {
    let mut events = program.follow(session, "0.0").await;
    let line = "0123456789".repeat(8);
    let turn = program
        .turn(session, &terminal(&format!("yes {line} | head -c {BYTES}")))
        .await;
    loop {
        let frames = through(&mut events, "turn.completed").await;
        if frames.last().unwrap().data["turn_id"] == turn {
            return;
        }
    }
}

/// Reads until so many turns have ended.
async fn reads_on(mut viewer: TcpStream, turns: usize) {
    const END: &[u8] = b"event: turn.completed\n";
    let (mut ended, mut tail, mut buffer) = (0, Vec::new(), vec![0; 64 << 10]);
    while ended < turns {
        let count = viewer.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "the stream goes on");
        tail.extend_from_slice(&buffer[..count]);
        ended += tail.windows(END.len()).filter(|window| *window == END).count();
        // What may be the beginning of another one.
        tail.drain(..tail.len().saturating_sub(END.len() - 1));
    }
}

#[tokio::test]
async fn viewers_that_stop_reading_neither_slow_a_turn_nor_fill_the_memory() {
    let place = Place::sqlite();
    let program = Program::start(&place).await;
    let session = program.session().await;
    // Once without them: the memory that the turn itself takes.
    flood(&program, &session).await;

    let mut viewers = Vec::new();
    for _ in 0..VIEWERS {
        viewers.push(stalled(&program, &session).await);
    }
    let before = memory(&program, "VmRSS:");
    forget_peak(&program);
    // A turn that waited for one of them would wait for ever: they read nothing.
    flood(&program, &session).await;
    let grown = memory(&program, "VmHWM:").saturating_sub(before);
    assert!(grown < GROWTH_KIB, "grown by {grown} KiB");

    // Who reads on gets everything that is stored, to the end of both turns.
    for viewer in viewers {
        tokio::time::timeout(PATIENCE, reads_on(viewer, 2))
            .await
            .expect("the rest comes");
    }
    program.stop().await;
}
