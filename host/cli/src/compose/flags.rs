//! Fields of a service that are a flag of `sietch run` each.

use std::time::Duration;

use super::document::{Fields, Node};
use crate::flags::Span;

/// Fields with one value.
const ONE: [(&str, &str); 9] = [
    ("user", "-u"),
    ("working_dir", "-w"),
    ("hostname", "--hostname"),
    ("domainname", "--domainname"),
    ("shm_size", "--shm-size"),
    ("platform", "--platform"),
    ("cpuset", "--cpuset-cpus"),
    ("oom_score_adj", "--oom-score-adj"),
    ("stop_signal", "--stop-signal"),
];
/// Lists, or the one item.
const EACH: [(&str, &str); 8] = [
    ("tmpfs", "--tmpfs"),
    ("dns", "--dns"),
    ("dns_search", "--dns-search"),
    ("dns_opt", "--dns-option"),
    ("cap_add", "--cap-add"),
    ("cap_drop", "--cap-drop"),
    ("group_add", "--group-add"),
    ("security_opt", "--security-opt"),
];
/// Lists of `NAME=VALUE`, or mappings.
const PAIRS: [(&str, &str); 3] = [
    ("labels", "--label"),
    ("annotations", "--annotation"),
    ("sysctls", "--sysctl"),
];
/// Those with a form of their own.
const OTHERS: [&str; 6] = [
    "read_only",
    "ulimits",
    "extra_hosts",
    "pull_policy",
    "restart",
    "stop_grace_period",
];

/// The names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    let tables = ONE.into_iter().chain(EACH).chain(PAIRS);
    tables.map(|(name, _)| name).chain(OTHERS)
}

/// Adds the flags of those that are there.
pub fn add(line: &mut Vec<String>, fields: &Fields) -> Result<(), String> {
    let mut add = |flag: &str, value: String| line.extend([flag.to_string(), value]);
    for (name, flag) in ONE {
        if let Some(node) = fields.get(name) {
            add(flag, node.text()?);
        }
    }
    for (name, flag) in EACH {
        let texts = fields.get(name).map_or(Ok(Vec::new()), Node::texts)?;
        texts.into_iter().for_each(|text| add(flag, text));
    }
    for (name, flag) in PAIRS {
        let all = fields.get(name).map_or(Ok(Vec::new()), pairs)?;
        all.into_iter().for_each(|pair| add(flag, pair));
    }
    let limits = fields.get("ulimits").map_or(Ok(Vec::new()), limits)?;
    limits.into_iter().for_each(|limit| add("--ulimit", limit));
    let hosts = fields.get("extra_hosts").map_or(Ok(Vec::new()), hosts)?;
    hosts.into_iter().for_each(|host| add("--add-host", host));
    add_life(line, fields)
}

/// Whether its image is brought, what it may change, and how it ends.
fn add_life(line: &mut Vec<String>, fields: &Fields) -> Result<(), String> {
    if fields.get("read_only").map_or(Ok(false), Node::flag)? {
        line.push("--read-only".into());
    }
    if let Some(node) = fields.get("pull_policy") {
        match node.text()?.as_str() {
            "if_not_present" => line.extend(["--pull", "missing"].map(str::to_string)),
            policy @ ("always" | "missing" | "never" | "newer") => {
                line.extend(["--pull", policy].map(str::to_string));
            }
            _ => node.refuse(),
        }
    }
    if let Some(node) = fields.get("restart") {
        match node.text()?.as_str() {
            "no" | "false" => {}
            policy => line.extend(["--restart", policy].map(str::to_string)),
        }
    }
    if let Some(node) = fields.get("stop_grace_period") {
        let time = time(node)?;
        // A program has at least as long as the file says.
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        line.extend(["--stop-timeout".into(), seconds.to_string()]);
    }
    Ok(())
}

/// A time, which fits into any sum of times.
pub(super) fn time(node: &Node) -> Result<Duration, String> {
    let time = node.text()?.parse::<Span>();
    time.map(|span| span.0)
        .map_err(|_| node.wrong("a time such as 1m30s"))
}

/// `NAME=VALUE` each.
fn pairs(node: &Node) -> Result<Vec<String>, String> {
    if !node.is_mapping() {
        return node.texts();
    }
    let pair = |(name, node): (String, Node)| Ok(format!("{name}={}", node.text()?));
    node.entries()?.into_iter().map(pair).collect()
}

/// `NAME=SOFT[:HARD]` each.
fn limits(node: &Node) -> Result<Vec<String>, String> {
    let limit = |(name, node): (String, Node)| {
        if !node.is_mapping() {
            return Ok(format!("{name}={}", node.text()?));
        }
        let fields = node.fields(&["soft", "hard"])?;
        let both = fields.get("soft").zip(fields.get("hard"));
        let (soft, hard) = both.ok_or_else(|| node.wrong("a limit with soft and hard"))?;
        Ok(format!("{name}={}:{}", soft.text()?, hard.text()?))
    };
    node.entries()?.into_iter().map(limit).collect()
}

/// `NAME=ADDRESS` each, of which a mapping has several for a name.
fn hosts(node: &Node) -> Result<Vec<String>, String> {
    if !node.is_mapping() {
        return node.texts();
    }
    let mut hosts = Vec::new();
    for (name, node) in node.entries()? {
        let addresses = node.texts()?.into_iter();
        hosts.extend(addresses.map(|address| format!("{name}={address}")));
    }
    Ok(hosts)
}
