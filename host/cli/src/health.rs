//! Whether a machine's program is well: a command in the machine that is asked again and again (docker's HEALTHCHECK).
//!
//! The session asks, by the agent, as `sietch exec` would. What it hears is in `health.json` in the machine's folder,
//! written whole each time. Failures of the start period, and of the first interval, do not count until the first success.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::probe::{self, Answer};
use crate::events;
use crate::flags::{HealthFlags, OnUnhealthy};
use crate::state::{self, Folder};

const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);
const START_INTERVAL: Duration = Duration::from_secs(5);
const RETRIES: u32 = 3;
/// As often an image may ask, and so soon everybody is asked first.
const SHORTEST: Duration = Duration::from_secs(1);
/// As docker has it.
const ANSWERS_KEPT: usize = 5;
/// As podman has it.
const BYTES_KEPT: usize = 500;
/// However many are wanted.
const ANSWERS_MAX: usize = 1000;

/// How a program is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The command.
    pub command: Vec<String>,
    interval: Duration,
    timeout: Duration,
    start_period: Duration,
    start_interval: Duration,
    retries: u32,
    on_unhealthy: OnUnhealthy,
    startup: Option<Startup>,
    answers_kept: usize,
    bytes_kept: usize,
}

/// What has to succeed first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Startup {
    command: Vec<String>,
    interval: Duration,
    timeout: Duration,
    /// 0 for as many as there are.
    retries: u32,
    successes: u32,
}

impl Startup {
    fn of(flags: &HealthFlags) -> Option<Self> {
        Some(Self {
            command: typed(flags.health_startup_cmd.as_deref()?)?,
            interval: flags
                .health_startup_interval
                .map_or(INTERVAL, |span| span.0),
            timeout: flags.health_startup_timeout.map_or(TIMEOUT, |span| span.0),
            retries: flags.health_startup_retries,
            successes: flags.health_startup_success,
        })
    }

    /// Asks until all is well, or the machine has ended, or it failed too often; whether all is well.
    fn succeeds(&self, name: &str) -> Option<bool> {
        let (mut failures, mut successes) = (0, 0);
        while successes < self.successes {
            thread::sleep(self.interval);
            match probe::ask(name, &self.command, self.timeout)?.status {
                0 => (failures, successes) = (0, successes + 1),
                _ => (failures, successes) = (failures + 1, 0),
            }
            if self.retries != 0 && failures >= self.retries {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl Check {
    /// How long failures do not count: docker asks for the first time after an interval.
    fn grace(&self) -> Duration {
        self.start_period.max(self.interval)
    }

    /// What `flags` say, and else the image.
    pub fn of(flags: &HealthFlags, image: Option<&Value>) -> Option<Self> {
        if flags.no_healthcheck {
            return None;
        }
        let command = match &flags.health_cmd {
            Some(text) => typed(text)?,
            None => of_image(image?)?,
        };
        // Go writes times in nanoseconds, and 0 for none.
        let time = |flag: Option<crate::flags::Span>, key: &str, usual| {
            let of_image = image.and_then(|image| image[key].as_u64());
            let of_image = of_image.filter(|&ns| ns != 0).map(Duration::from_nanos);
            let of_image = of_image.map(|time| time.max(SHORTEST));
            flag.map(|span| span.0).or(of_image).unwrap_or(usual)
        };
        let retries = image.and_then(|image| u32::try_from(image["Retries"].as_u64()?).ok());
        Some(Self {
            command,
            interval: time(flags.health_interval, "Interval", INTERVAL),
            timeout: time(flags.health_timeout, "Timeout", TIMEOUT),
            start_period: time(flags.health_start_period, "StartPeriod", Duration::ZERO),
            start_interval: time(flags.health_start_interval, "StartInterval", START_INTERVAL),
            retries: flags
                .health_retries
                .or(retries)
                .filter(|&times| times != 0)
                .unwrap_or(RETRIES),
            on_unhealthy: flags.health_on_failure,
            startup: Startup::of(flags),
            answers_kept: all_if_none(flags.health_max_log_count.unwrap_or(ANSWERS_KEPT)),
            bytes_kept: all_if_none(flags.health_max_log_size.unwrap_or(BYTES_KEPT)),
        })
    }
}

/// 0 stands for all.
fn all_if_none(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

fn by_shell(text: &str) -> Vec<String> {
    ["/bin/sh", "-c", text].map(ToString::to_string).to_vec()
}

/// `none`, words for a shell, or a JSON list.
fn typed(text: &str) -> Option<Vec<String>> {
    match serde_json::from_str::<Vec<String>>(text) {
        _ if text == "none" => None,
        Ok(words) => words_of(&words),
        Err(_) => Some(by_shell(text)),
    }
}

fn of_image(image: &Value) -> Option<Vec<String>> {
    let words: Vec<String> = serde_json::from_value(image["Test"].clone()).ok()?;
    words_of(&words)
}

/// `["CMD", PROGRAM, ...]`, `["CMD-SHELL", TEXT]`, `["NONE"]`, or the command alone.
fn words_of(words: &[String]) -> Option<Vec<String>> {
    match words.split_first()? {
        (kind, _) if kind == "NONE" => None,
        (kind, words) if kind == "CMD-SHELL" && !words.is_empty() => {
            Some(by_shell(&words.join(" ")))
        }
        (kind, command) if kind == "CMD" => (!command.is_empty()).then(|| command.to_vec()),
        _ => Some(words.to_vec()),
    }
}

/// What is known of a machine's health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `starting`, `healthy` or `unhealthy`.
    pub status: String,
    /// Failures in a row.
    pub failing_streak: u32,
    /// The last answers.
    pub log: Vec<Entry>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in seconds since the epoch.
    pub at_s: u64,
    /// The command's status.
    pub exit_code: u8,
    /// What it wrote.
    pub output: String,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("health.json")
}

impl Health {
    /// That of the machine in `folder`, if somebody asks.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file(folder)).ok()?).ok()
    }

    fn write(&self, folder: &Path) {
        let (path, draft) = (file(folder), folder.join("health.json.new"));
        let text = serde_json::to_vec(self).unwrap_or_default();
        // A machine that is removed right now needs none.
        let _ = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
    }

    fn starting() -> Self {
        Self {
            status: "starting".into(),
            ..Self::default()
        }
    }

    /// How long nobody asks, so long after the start. Until the first good answer somebody may wait for it.
    fn pause(&self, check: &Check, since_start: Duration) -> Duration {
        let is_starting = self.status == "starting" && since_start < check.grace();
        match (is_starting, self.log.is_empty()) {
            (true, true) => SHORTEST.min(check.interval),
            (true, false) => check.start_interval.min(check.interval),
            (false, _) => check.interval,
        }
    }

    /// Takes an answer, which came while failures do not count yet if `is_starting`.
    fn note(&mut self, answer: Answer, check: &Check, is_starting: bool) {
        if answer.status == 0 {
            self.status = "healthy".into();
            self.failing_streak = 0;
        } else if !(is_starting && self.status == "starting") {
            self.failing_streak += 1;
            if self.failing_streak >= check.retries {
                self.status = "unhealthy".into();
            }
        }
        self.log.push(Entry {
            at_s: state::now_s(),
            exit_code: answer.status,
            output: answer.output.chars().take(check.bytes_kept).collect(),
        });
        let kept = check.answers_kept.min(ANSWERS_MAX);
        let surplus = self.log.len().saturating_sub(kept);
        self.log.drain(..surplus);
    }
}

/// Asks as long as the machine runs; `act` is called once when it turns out to be unhealthy.
pub fn watch(
    name: &str,
    folder: &Folder,
    check: Check,
    act: impl FnOnce(OnUnhealthy) + Send + 'static,
) {
    let (name, folder) = (name.to_string(), folder.clone());
    let path = folder.path().to_path_buf();
    let mut health = Health::starting();
    health.write(&path);
    thread::spawn(move || {
        let mut act = Some(act);
        if let Some(startup) = &check.startup {
            match startup.succeeds(&name) {
                None => return,
                Some(true) => {}
                Some(false) => {
                    health.status = "unhealthy".into();
                    health.write(&path);
                    if let Some(act) = act.take() {
                        act(check.on_unhealthy);
                    }
                    return;
                }
            }
        }
        let start = Instant::now();
        loop {
            thread::sleep(health.pause(&check, start.elapsed()));
            if folder.own_settings().is_none() {
                // The next machine of that name is not ours to ask.
                return;
            }
            let is_starting = start.elapsed() < check.grace();
            let Some(answer) = probe::ask(&name, &check.command, check.timeout) else {
                return;
            };
            let before = health.status.clone();
            health.note(answer, &check, is_starting);
            health.write(&path);
            if health.status != before {
                events::note(&name, &format!("health_status: {}", health.status), None);
            }
            if health.status == "unhealthy"
                && let Some(act) = act.take()
            {
                act(check.on_unhealthy);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(flags: &HealthFlags, image: Value) -> Option<Check> {
        Check::of(flags, Some(&image))
    }

    fn answer(status: u8) -> Answer {
        Answer {
            status,
            output: String::new(),
        }
    }

    #[test]
    fn an_image_says_how_and_the_command_line_otherwise() {
        let image = json!({"Test": ["CMD", "redis-cli", "ping"], "Interval": 5_000_000_000u64, "Retries": 7});
        let of_image = check(&HealthFlags::default(), image.clone()).unwrap();
        assert_eq!(of_image.command, ["redis-cli", "ping"]);
        assert_eq!((of_image.interval.as_secs(), of_image.retries), (5, 7));
        assert_eq!(of_image.timeout, TIMEOUT);
        let typed = HealthFlags {
            health_cmd: Some("true && true".into()),
            ..HealthFlags::default()
        };
        let typed = check(&typed, image.clone()).unwrap();
        assert_eq!(typed.command, ["/bin/sh", "-c", "true && true"]);
        let none = HealthFlags {
            no_healthcheck: true,
            ..HealthFlags::default()
        };
        assert_eq!(check(&none, image), None);
        assert_eq!(
            check(&HealthFlags::default(), json!({"Test": ["NONE"]})),
            None
        );
        assert_eq!(Check::of(&HealthFlags::default(), None), None);
        let shell = check(
            &HealthFlags::default(),
            json!({"Test": ["CMD-SHELL", "a b"]}),
        );
        assert_eq!(shell.unwrap().command, ["/bin/sh", "-c", "a b"]);
    }

    #[test]
    fn so_many_failures_in_a_row_make_it_unhealthy() {
        let check = check(
            &HealthFlags::default(),
            json!({"Test": ["CMD", "x"], "Retries": 2}),
        )
        .unwrap();
        let mut health = Health::starting();
        health.note(answer(1), &check, true);
        health.note(answer(1), &check, true);
        assert_eq!(
            (health.status.as_str(), health.failing_streak),
            ("starting", 0)
        );
        health.note(answer(1), &check, false);
        health.note(answer(0), &check, false);
        assert_eq!(
            (health.status.as_str(), health.failing_streak),
            ("healthy", 0)
        );
        health.note(answer(1), &check, false);
        assert_eq!(health.status, "healthy");
        for _ in 0..9 {
            health.note(answer(1), &check, false);
        }
        assert_eq!(
            (health.status.as_str(), health.log.len()),
            ("unhealthy", ANSWERS_KEPT)
        );
    }
}
