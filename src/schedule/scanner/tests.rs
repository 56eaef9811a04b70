//! Installing, from a server of our own that speaks TLS with a certificate that
//! nobody signed.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::environment::ScannerSettings;
use crate::fetch::pinned::Fingerprint;

const PROGRAM_TEXT: &str = "#!/bin/sh\nexit 2\n";

/// What the server has, by path, and what it was asked for.
struct Server {
    base: url::Url,
    pin: Fingerprint,
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A whole release of this machine.
    async fn start() -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let files: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (shown, seen) = (Arc::clone(&files), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, shown, seen) = (acceptor.clone(), Arc::clone(&shown), Arc::clone(&seen));
                tokio::spawn(async move {
                    // A client that does not trust us leaves.
                    if let Ok(mut stream) = acceptor.accept(socket).await {
                        answer(&mut stream, &shown, &seen).await;
                    }
                });
            }
        });
        let server = Self {
            base: format!("https://localhost:{port}/r").parse().unwrap(),
            pin: Sha256::digest(cert.der()).into(),
            files,
            asked,
        };
        let archive = packed("tirith-1/tirith", PROGRAM_TEXT);
        let sums = format!(
            "{}  other.tar.gz\n{}  {}\n",
            "0".repeat(64),
            hex(&Sha256::digest(&archive)),
            name()
        );
        server.put(&name(), archive);
        server.put(SUMS, sums);
        server.put(&format!("{SUMS}.sig"), "signature");
        server.put(&format!("{SUMS}.pem"), "certificate");
        server
    }

    fn put(&self, name: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(format!("/r/{name}"), content.into());
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn answer(
    stream: &mut tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    files: &Mutex<HashMap<String, Vec<u8>>>,
    asked: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let file = files.lock().unwrap().get(&path).cloned();
    asked.lock().unwrap().push(path);
    let (status, body) = match file {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    // Where a file sends on to.
    let location = match body.strip_prefix(b"location: ") {
        Some(to) => format!("location: {}\r\n", String::from_utf8_lossy(to)),
        None => String::new(),
    };
    let status = if location.is_empty() { status } else { "302 Found" };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{location}content-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let _gone = stream.shutdown().await;
}

fn name() -> String {
    format!("tirith-{}.tar.gz", target().unwrap())
}

fn packed(path: &str, content: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

/// An installation into a directory of its own.
struct Trial {
    installing: Installing,
    directory: tempfile::TempDir,
}

impl Trial {
    fn new(server: &Server, pin: Option<Fingerprint>, cosign: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("path")).unwrap();
        let paths = format!("{}:/usr/bin:/bin", directory.path().join("path").display());
        let installing = Installing {
            release: Release::at(server.base.clone(), pin).unwrap(),
            cosign,
            directory: directory.path().join("bin"),
            variables: vec![
                ("PATH".to_owned(), paths),
                ("HOME".to_owned(), "/root".to_owned()),
                ("SECRET".to_owned(), "x".to_owned()),
            ],
            clock: Clock::stepped(Timestamp(1_800_000_000_000)),
        };
        Self { installing, directory }
    }

    fn program(&self) -> PathBuf {
        self.installing.directory.join(PROGRAM)
    }

    fn reason(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.installing.mark()).ok()?;
        Some(serde_json::from_str::<Mark>(&text).unwrap().reason)
    }

    /// Puts a `cosign` on the path.
    fn cosign(&self, script: &str) {
        let path = self.directory.path().join("path/cosign");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn what_the_list_vouches_for_is_installed_and_asked() {
    let server = Server::start().await;
    let trial = Trial::new(&server, Some(server.pin), false);
    let scanner = Arc::new(Scanner::new(ScannerSettings {
        enabled: true,
        program: PROGRAM.to_owned(),
        timeout: Duration::from_secs(5),
        fail_open: true,
        variables: vec![("PATH".to_owned(), "/nowhere".to_owned())],
        fallback: Some(trial.program()),
    }));
    assert!(scanner.is_missing());
    trial.installing.ensure().await;
    assert_eq!(trial.reason(), None);
    assert_eq!(std::fs::read_to_string(trial.program()).unwrap(), PROGRAM_TEXT);
    assert!(!scanner.is_missing());
    scanner.scan("ls").await;
    assert_eq!(scanner.said("ls").action, crate::guard::tirith::Action::Warn);
}

#[tokio::test]
async fn a_command_that_finds_no_scanner_has_it_fetched() {
    let server = Server::start().await;
    let trial = Trial::new(&server, Some(server.pin), false);
    // The first try fails.
    let archive = server.files.lock().unwrap().remove(&format!("/r/{}", name())).unwrap();
    let (program, clock) = (trial.program(), trial.installing.clock.clone());
    let scanner = Arc::new(Scanner::new(ScannerSettings {
        enabled: true,
        program: PROGRAM.to_owned(),
        timeout: Duration::from_secs(5),
        fail_open: true,
        variables: Vec::new(),
        fallback: Some(program.clone()),
    }));
    let stop = CancellationToken::new();
    let kept = tokio::spawn(keep(trial.installing, Arc::clone(&scanner), stop.clone()));
    let marked = trial.directory.path().join("bin").join(MARK);
    while !marked.exists() {
        tokio::task::yield_now().await;
    }
    server.put(&name(), archive);
    clock.step(REMEMBERED);
    scanner.scan("ls").await;
    while !program.exists() {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    kept.await.unwrap();
}

#[tokio::test]
async fn what_is_not_as_listed_is_never_kept() {
    let server = Server::start().await;
    for (change, reason) in [
        ("hash", "checksum_mismatch"),
        ("list", "checksum_missing"),
        ("archive", "archive_refused"),
        ("gone", "download_failed"),
    ] {
        let server = match change {
            "hash" => {
                server.put(&name(), packed("tirith", "something else"));
                &server
            }
            "list" => {
                server.put(SUMS, format!("{}  other.tar.gz\nnonsense {}\n", "0".repeat(64), name()));
                &server
            }
            "archive" => {
                let archive = packed("other", "x");
                server.put(SUMS, format!("{}  {}\n", hex(&Sha256::digest(&archive)), name()));
                server.put(&name(), archive);
                &server
            }
            _ => {
                server.files.lock().unwrap().clear();
                &server
            }
        };
        let trial = Trial::new(server, Some(server.pin), false);
        trial.installing.ensure().await;
        assert_eq!(trial.reason().as_deref(), Some(reason));
        assert!(!trial.program().exists(), "{reason}");
    }
}

#[tokio::test]
async fn only_the_pinned_certificate_is_trusted_there() {
    let server = Server::start().await;
    let mut other = server.pin;
    other[0] ^= 1;
    for pin in [None, Some(other)] {
        let trial = Trial::new(&server, pin, false);
        trial.installing.ensure().await;
        assert_eq!(trial.reason().as_deref(), Some("download_failed"));
    }
    assert_eq!(server.asked(), 0, "nothing was asked of a host that is not trusted");
    let plain = "http://localhost:1/r".parse().unwrap();
    assert!(matches!(
        Release::at(plain, Some(server.pin)),
        Err(ReleaseError::Address(_))
    ));
    // Neither to a plain address nor to a metadata service.
    for to in ["http://localhost/x", "https://169.254.169.254/x"] {
        server.put(SUMS, format!("location: {to}"));
        let trial = Trial::new(&server, Some(server.pin), false);
        trial.installing.ensure().await;
        assert_eq!(trial.reason().as_deref(), Some("download_failed"), "{to}");
    }
}

#[tokio::test]
async fn a_failure_is_remembered_for_a_day() {
    let server = Server::start().await;
    let trial = Trial::new(&server, Some(server.pin), false);
    let sums = server.files.lock().unwrap().remove(&format!("/r/{SUMS}")).unwrap();
    trial.installing.ensure().await;
    server.put(SUMS, sums);
    let asked = server.asked();
    trial.installing.clock.step(REMEMBERED - Duration::from_secs(1));
    trial.installing.ensure().await;
    assert_eq!((server.asked(), trial.program().exists()), (asked, false));
    trial.installing.clock.step(Duration::from_secs(1));
    trial.installing.ensure().await;
    assert!(trial.program().exists());
    assert_eq!(trial.reason(), None, "the mark is gone");
}

#[tokio::test]
async fn where_a_signature_is_wanted_cosign_has_to_accept_it() {
    let server = Server::start().await;
    let trial = Trial::new(&server, Some(server.pin), true);
    trial.installing.ensure().await;
    assert_eq!(trial.reason().as_deref(), Some("cosign_missing"));
    assert_eq!(server.asked(), 0);
    // It came, so that is tried again at once; and it says no.
    trial.cosign("exit 1");
    trial.installing.ensure().await;
    assert_eq!(trial.reason().as_deref(), Some("cosign_failed"));
    assert!(!trial.program().exists());
    // That is no failure which goes away by itself.
    trial.cosign(
        r#"test "$1" = verify-blob -a "$2" = --certificate -a "$4" = --signature || exit 1
        grep -q certificate "$3" && grep -q signature "$5" && grep -q tar.gz "${10}" || exit 1
        test "$6" = --certificate-identity-regexp -a "$9" = https://token.actions.githubusercontent.com || exit 1
        case "$7" in *sheeki03/tirith*) ;; *) exit 1 ;; esac
        test -z "$SECRET""#,
    );
    trial.installing.ensure().await;
    assert!(!trial.program().exists());
    trial.installing.clock.step(REMEMBERED);
    trial.installing.ensure().await;
    assert_eq!((trial.reason(), trial.program().exists()), (None, true));
}

#[test]
fn a_list_names_files_as_sha256sum_does() {
    let hash = "A".repeat(64);
    let of = |line: String| listed(line.as_bytes(), "a.tar.gz");
    assert_eq!(of(format!("{hash}  a.tar.gz")), Some("a".repeat(64)));
    assert_eq!(of(format!("{hash} *a.tar.gz")), Some("a".repeat(64)));
    for wrong in [
        format!("{hash}  b.tar.gz"),
        format!("{hash}  xa.tar.gz"),
        "abc  a.tar.gz".to_owned(),
    ] {
        assert_eq!(of(wrong), None);
    }
}
