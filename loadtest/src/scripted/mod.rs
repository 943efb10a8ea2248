//! A scripted model: a small server that speaks OpenAI's chat completions and sees nothing but the prompt.
//!
//! It is no model and says so: its name is `scripted`, and every answer begins with a remark that it is one.
//! It understands two little tasks (see [`task`]); on demand it is wrong, leaves the reviewed paths, is late,
//! or says anything at all, so that everything around a model can be shown and tested without one.

pub mod seeded;
pub mod task;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use task::Question;

/// The model's name.
pub const MODEL: &str = "scripted";
/// Bytes of a request's body that are read, at most.
const BODY_BYTES_MAX: usize = 64 << 20;

/// What the server does with one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Keeps both sides.
    Right,
    /// Keeps main's lines, and writes the reviewed ones in other words.
    Wrong,
    /// Is right, and edits this path as well.
    Outside(String),
    /// Is right after so many milliseconds more.
    Late(u64),
    /// Says this.
    Say(String),
    /// Replies with this status and no answer.
    Status(u16),
}

/// One question that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The title of the change.
    pub title: String,
    /// The paths that it had to answer for.
    pub paths: Vec<String>,
    /// What was done.
    pub act: Act,
    /// The text of the answer.
    pub answer: String,
}

/// Decides what is done with a question.
pub type Choose = dyn Fn(&Question) -> Act + Send + Sync;

struct Inner {
    choose: Box<Choose>,
    pace: Duration,
    asked: Mutex<Vec<Asked>>,
    tell: bool,
    now: AtomicUsize,
    most: AtomicUsize,
    stop: AtomicBool,
}

/// The running server; it ends when this is dropped.
pub struct Scripted {
    address: SocketAddr,
    inner: Arc<Inner>,
}

impl Scripted {
    /// Starts it on a port of 127.0.0.1 (0 takes a free one); each answer takes `pace`. With `tell`, each
    /// [`Asked`] is a line of JSON on standard output.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(
        port: u16,
        pace: Duration,
        tell: bool,
        choose: impl Fn(&Question) -> Act + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .with_context(|| format!("the scripted model cannot listen on port {port}"))?;
        let address = listener.local_addr()?;
        let inner = Arc::new(Inner {
            choose: Box::new(choose),
            pace,
            asked: Mutex::default(),
            tell,
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let shared = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let inner = Arc::clone(&shared);
                // A caller that has gone away is what a late answer meets.
                std::thread::spawn(move || drop(serve(&inner, stream)));
            }
        });
        Ok(Self { address, inner })
    }

    /// The address for `SWITCHYARD_MODEL_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Arguments of `scripts/serve.mjs` that name this model to a platform, with a time limit in seconds for
    /// one call and prices, so that it costs something.
    #[must_use]
    pub fn arguments(&self, timeout_seconds: u64) -> Vec<String> {
        arguments(&self.url(), timeout_seconds)
    }

    /// All questions so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.inner.asked.lock().map(|asked| asked.clone()).unwrap_or_default()
    }

    /// Questions that are under way now.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.inner.now.load(Ordering::Relaxed)
    }

    /// The most questions that were under way at once.
    #[must_use]
    pub fn width(&self) -> usize {
        self.inner.most.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// As [`Scripted::arguments`], for a server of another process.
#[must_use]
pub fn arguments(url: &str, timeout_seconds: u64) -> Vec<String> {
    let settings = [
        ("SWITCHYARD_MODEL", MODEL.to_owned()),
        ("SWITCHYARD_MODEL_KIND", "openai".to_owned()),
        ("SWITCHYARD_MODEL_URL", url.to_owned()),
        ("SWITCHYARD_MODEL_TIMEOUT_SECONDS", timeout_seconds.to_string()),
        ("SWITCHYARD_MODEL_PRICE_IN", "1.00".to_owned()),
        ("SWITCHYARD_MODEL_PRICE_OUT", "5.00".to_owned()),
    ];
    settings.into_iter().flat_map(|(name, value)| ["--var".to_owned(), format!("{name}={value}")]).collect()
}

fn serve(inner: &Inner, mut stream: TcpStream) -> Result<()> {
    let (line, body) = read(&stream)?;
    if !line.starts_with("POST ") || !line.contains("/chat/completions") {
        let error =
            json!({ "error": { "message": "the scripted model knows POST /v1/chat/completions alone" } });
        return reply(&mut stream, 404, &error);
    }
    let now = inner.now.fetch_add(1, Ordering::Relaxed) + 1;
    inner.most.fetch_max(now, Ordering::Relaxed);
    let answered = answer(inner, &body);
    inner.now.fetch_sub(1, Ordering::Relaxed);
    let (status, value) = answered;
    reply(&mut stream, status, &value)
}

/// The request's first line and its body.
fn read(stream: &TcpStream) -> Result<(String, Vec<u8>)> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>()?.min(BODY_BYTES_MAX);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first, body))
}

fn answer(inner: &Inner, body: &[u8]) -> (u16, Value) {
    let began = Instant::now();
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |role: &str| {
        asked.get("messages").and_then(Value::as_array).into_iter().flatten().find_map(|message| {
            (message.get("role")?.as_str()? == role).then(|| message.get("content")?.as_str()).flatten()
        })
    };
    let Some(text) = said("user") else {
        return (400, json!({ "error": { "message": "there is no message of a user" } }));
    };
    let question = Question::read(text);
    let act = (inner.choose)(&question);
    let text_of_answer = match &act {
        Act::Say(text) => text.clone(),
        Act::Status(_) => String::new(),
        Act::Wrong => question.answer(false, None),
        Act::Outside(path) => question.answer(true, Some(path)),
        Act::Right | Act::Late(_) => question.answer(true, None),
    };
    keep(inner, &question, &act, &text_of_answer);
    let late = if let Act::Late(ms) = act { Duration::from_millis(ms) } else { Duration::ZERO };
    std::thread::sleep((inner.pace + late).saturating_sub(began.elapsed()));
    if let Act::Status(status) = act {
        return (status, json!({ "error": { "message": "scripted trouble" } }));
    }
    let tokens = |text: &str| text.len().div_ceil(4);
    let usage = json!({
        "prompt_tokens": tokens(text) + tokens(said("system").unwrap_or_default()),
        "completion_tokens": tokens(&text_of_answer),
    });
    let message = json!({ "role": "assistant", "content": text_of_answer });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    (200, json!({ "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage }))
}

fn keep(inner: &Inner, question: &Question, act: &Act, answer: &str) {
    let asked = Asked {
        title: question.title.clone(),
        paths: question.paths(),
        act: act.clone(),
        answer: answer.to_owned(),
    };
    if inner.tell
        && let Ok(line) = serde_json::to_string(&asked)
    {
        println!("{line}");
    }
    if let Ok(mut all) = inner.asked.lock() {
        all.push(asked);
    }
}

fn reply(stream: &mut TcpStream, status: u16, value: &Value) -> Result<()> {
    let body = value.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()?;
    Ok(())
}
