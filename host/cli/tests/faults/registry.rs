//! A registry on loopback that wants tokens, and whose answers a test spoils.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use images::Digest;

use crate::image::{Image, MANIFEST_TYPE};

/// What is asked for, in this order: first without a token, then for one, then with it.
pub const ANSWERS: [&str; 5] = ["challenge", "token", "manifest", "config", "layer"];

/// An answer on its way.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One of [`ANSWERS`].
    pub kind: &'static str,
    /// How often that was asked for before.
    pub number: u32,
    /// Status and headers, with the empty line.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }

    /// The same with that status, and nothing in it.
    pub fn fail(self, status: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").into_bytes()
    }

    /// The same, with another length than the body has.
    pub fn with_length(self, length: &str) -> Vec<u8> {
        let lines = self
            .head
            .split("\r\n")
            .map(|line| match line.starts_with("Content-Length") {
                true => format!("Content-Length: {length}"),
                false => line.to_string(),
            });
        let head = lines.collect::<Vec<_>>().join("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

/// What becomes of an answer: the bytes that are sent before the connection ends.
pub type Spoil = dyn Fn(Answer) -> Vec<u8> + Send + Sync;

/// It ends with the process.
pub struct Registry {
    /// `HOST:PORT`.
    pub host: String,
    spoil: Arc<Mutex<Arc<Spoil>>>,
}

struct Served {
    image: Image,
    host: String,
    knows_ranges: bool,
    pause: Option<Duration>,
    spoil: Arc<Mutex<Arc<Spoil>>>,
    asked: Mutex<HashMap<&'static str, u32>>,
}

impl Registry {
    pub fn new(image: Image) -> Self {
        Self::with(image, true, None)
    }

    /// One that sends byte for byte with that pause, if there is one.
    pub fn with(image: Image, knows_ranges: bool, pause: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let host = listener.local_addr().expect("bound").to_string();
        let whole: Arc<Spoil> = Arc::new(|answer: Answer| answer.bytes());
        let spoil = Arc::new(Mutex::new(whole));
        let served = Arc::new(Served {
            image,
            host: host.clone(),
            knows_ranges,
            pause,
            spoil: Arc::clone(&spoil),
            asked: Mutex::default(),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                thread::spawn(move || served.serve(stream));
            }
        });
        Self { host, spoil }
    }

    /// How `sietch` calls the image.
    pub fn reference(&self) -> String {
        format!("docker://{}/a:1", self.host)
    }

    pub fn spoil(&self, spoil: impl Fn(Answer) -> Vec<u8> + Send + Sync + 'static) {
        *self.spoil.lock().expect("nobody panics") = Arc::new(spoil);
    }
}

impl Served {
    /// One request; the connection ends then.
    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
        let Some(first) = lines.next() else { return };
        let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            let of = |line: &String| Some(line.split_once(": ")?.1.to_string());
            let named = |line: &&String| line.to_ascii_lowercase().starts_with(name);
            lines.iter().find(named).and_then(of)
        };
        let path = first.split(' ').nth(1).unwrap_or_default();
        let range = header("range:").filter(|_| self.knows_ranges);
        let answer = self.answer(path, header("authorization:").is_some(), range);
        let spoil = Arc::clone(&self.spoil.lock().expect("nobody panics"));
        let bytes = spoil(answer);
        // Who is gone needs no answer.
        let _ = match self.pause {
            None => stream.write_all(&bytes),
            Some(pause) => bytes.iter().try_for_each(|byte| {
                thread::sleep(pause);
                stream.write_all(&[*byte])
            }),
        };
    }

    fn answer(&self, path: &str, is_known: bool, range: Option<String>) -> Answer {
        let parts = &self.image.parts;
        let part_at = |path: &str| {
            let is_it = |(_, bytes): &(&&'static str, &Vec<u8>)| {
                path.ends_with(&Digest::of(bytes).to_string())
            };
            parts.iter().find(is_it).map(|(kind, _)| *kind)
        };
        let (kind, status, headers, body) = match path {
            path if path.starts_with("/token") => (
                "token",
                "200 OK",
                String::new(),
                br#"{"token":"abc"}"#.to_vec(),
            ),
            _ if !is_known => {
                let realm = format!("http://{}/token", self.host);
                let header =
                    format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"x\"\r\n");
                ("challenge", "401 Unauthorized", header, Vec::new())
            }
            path if path.ends_with("/manifests/1") => {
                let header = format!("Content-Type: {MANIFEST_TYPE}\r\n");
                ("manifest", "200 OK", header, parts["manifest"].clone())
            }
            path => match part_at(path) {
                Some(kind) => (kind, "200 OK", String::new(), parts[kind].clone()),
                None => ("nothing", "404 Not Found", String::new(), Vec::new()),
            },
        };
        let start =
            range.and_then(|text| text.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        let (status, headers, body) = match start.filter(|start| *start < body.len()) {
            Some(start) => {
                let whole = body.len();
                let range = format!("Content-Range: bytes {start}-{}/{whole}\r\n", whole - 1);
                (
                    "206 Partial Content",
                    headers + &range,
                    body[start..].to_vec(),
                )
            }
            None => (status, headers, body),
        };
        let mut asked = self.asked.lock().expect("nobody panics");
        let number = asked.entry(kind).or_default();
        *number += 1;
        Answer {
            kind,
            number: *number - 1,
            head: format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
                body.len()
            ),
            body,
        }
    }
}
