//! A hub for tests that says what it is told to say, to the byte, and keeps what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;

use super::client::Client;
use crate::config::connection::Connection;
use crate::config::secret::Secret;

/// One connection, with the request that came over it.
pub(super) struct Asked {
    /// Request line, headers and body.
    pub(super) request: String,
    socket: TcpStream,
}

impl Asked {
    /// Sends some bytes.
    pub(super) fn say(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).unwrap();
    }

    /// Sends a whole answer and closes.
    pub(super) fn answer(mut self, status: &str, headers: &str, body: &str) -> String {
        self.say(&format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ));
        self.close()
    }

    /// Begins an answer that streams events.
    pub(super) fn begin_events(&mut self) {
        self.say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nfootbridge-call: call-1\r\nconnection: close\r\n\r\n");
    }

    /// Closes, and gives what was asked.
    pub(super) fn close(self) -> String {
        // The client may have closed first.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.request
    }
}

/// A hub that runs a script: the script takes connections as it needs them.
pub(super) struct ScriptedHub<T> {
    pub(super) client: Client,
    script: JoinHandle<T>,
}

impl<T: Send + 'static> ScriptedHub<T> {
    pub(super) fn start(script: impl FnOnce(&mut dyn FnMut() -> Asked) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let script = std::thread::spawn(move || script(&mut || take(&listener)));
        Self { client: client(&url), script }
    }

    /// Waits for the end of the script.
    pub(super) fn ended(self) -> T {
        self.script.join().unwrap()
    }
}

/// A client of whatever listens at an address, with the token `secret`, in `local/main`.
pub(super) fn client(url: &str) -> Client {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let connection = Connection {
        url: Some(url.to_owned()),
        token: Some(Secret::new("secret")),
        tenant: Some("local".to_owned()),
        project: Some("main".to_owned()),
        hub: None,
    };
    Client::new(connection, false).unwrap()
}

fn take(listener: &TcpListener) -> Asked {
    let (mut socket, _) = listener.accept().unwrap();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = socket.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Asked { request: text, socket };
            }
        }
        assert!(count > 0, "the request ends early: {text}");
    }
}
