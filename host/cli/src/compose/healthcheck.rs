//! `healthcheck` of a service becomes `--health-*` of `sietch run`: the machine's own session asks, and writes down what it
//! hears ([`crate::health`]). An image's HEALTHCHECK stays for what the file does not say.

use super::document::{Fields, Node};
use super::flags::time;

/// Who says how a service is asked whether it is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Healthcheck {
    /// The file.
    OfFile,
    /// The image, if it does.
    OfImage,
    /// The file, which turns it off.
    Off,
}

const FIELDS: [&str; 7] = [
    "test",
    "disable",
    "interval",
    "timeout",
    "start_period",
    "start_interval",
    "retries",
];
/// Fields that are times.
const TIMES: [(&str, &str); 4] = [
    ("interval", "--health-interval"),
    ("timeout", "--health-timeout"),
    ("start_period", "--health-start-period"),
    ("start_interval", "--health-start-interval"),
];

/// Adds the flags of `healthcheck`.
pub fn add(line: &mut Vec<String>, node: Option<&Node>) -> Result<Healthcheck, String> {
    let Some(node) = node else {
        return Ok(Healthcheck::OfImage);
    };
    let fields = node.fields(&FIELDS)?;
    let is_off = fields.get("disable").map_or(Ok(false), Node::flag)?;
    let test = fields.get("test").map(test).transpose()?;
    if is_off || test == Some(Test::None) {
        line.push("--no-healthcheck".into());
        return Ok(Healthcheck::Off);
    }
    let healthcheck = match test {
        Some(Test::Command(command)) => {
            line.extend(["--health-cmd".into(), command]);
            Healthcheck::OfFile
        }
        _ => Healthcheck::OfImage,
    };
    add_times(line, &fields)?;
    Ok(healthcheck)
}

/// `test`.
#[derive(PartialEq, Eq)]
enum Test {
    /// `["NONE"]`.
    None,
    /// As `--health-cmd` has it.
    Command(String),
}

fn test(node: &Node) -> Result<Test, String> {
    if !node.is_list() {
        return match node.text()?.as_str() {
            "none" => Ok(Test::None),
            "" => Err(node.wrong("a command")),
            text => Ok(Test::Command(text.into())),
        };
    }
    let words = node.texts()?;
    match words.split_first() {
        Some((kind, _)) if kind == "NONE" => Ok(Test::None),
        Some((kind, rest)) if kind == "CMD" && !rest.is_empty() => list(&words),
        Some((kind, rest)) if kind == "CMD-SHELL" && !rest.is_empty() => {
            list(&[kind.clone(), rest.join(" ")])
        }
        _ => Err(node.wrong("a line, or a list that begins with CMD, CMD-SHELL or NONE")),
    }
}

fn list(words: &[String]) -> Result<Test, String> {
    let text = serde_json::to_string(words);
    text.map(Test::Command).map_err(|error| error.to_string())
}

/// How often, and how long.
fn add_times(line: &mut Vec<String>, fields: &Fields) -> Result<(), String> {
    for (name, flag) in TIMES {
        // None stands for the usual one, as docker has it.
        if let Some(node) = fields.get(name)
            && !time(node)?.is_zero()
        {
            line.extend([flag.into(), node.text()?]);
        }
    }
    if let Some(retries) = fields.get("retries") {
        line.extend(["--health-retries".into(), retries.text()?]);
    }
    Ok(())
}
