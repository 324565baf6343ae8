//! A service becomes a line of `sietch run`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use images::Reference;

use super::document::{Fields, Node};
use super::healthcheck::{self, Healthcheck};
use super::{flags, variables};

/// What is known of a project when its services are read.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The project's name.
    pub project: &'a str,
    /// Its folder.
    pub folder: &'a Path,
    /// Real names of networks by those in the file.
    pub networks: &'a BTreeMap<String, String>,
    /// The same of volumes.
    pub volumes: &'a BTreeMap<String, String>,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name in the file.
    pub name: String,
    /// Its machine's.
    pub machine: String,
    /// The arguments of `sietch` that start it.
    pub arguments: Vec<String>,
    /// What must be before it starts.
    pub depends_on: BTreeMap<String, Condition>,
    /// Whether it may ever be healthy: only an image itself knows whether it says how to ask.
    pub can_be_healthy: bool,
    /// The names of its networks in the file.
    pub networks: Vec<String>,
}

/// What a service waits for of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It runs.
    Started,
    /// Its health check has succeeded.
    Healthy,
    /// It has ended well.
    Completed,
}

/// Beside those of [`flags`].
const FIELDS: [&str; 16] = [
    "image",
    "command",
    "entrypoint",
    "ports",
    "volumes",
    "environment",
    "env_file",
    "depends_on",
    "networks",
    "network_mode",
    "deploy",
    "mem_limit",
    "cpus",
    "container_name",
    "healthcheck",
    // Says nothing new: machines of a network reach each other's ports.
    "expose",
];
/// The network of services that name none.
pub const DEFAULT: &str = "default";

impl Service {
    /// Reads the service `name`.
    ///
    /// Errors: a sentence.
    pub fn read(name: &str, node: &Node, around: &Surroundings) -> Result<Self, String> {
        let known = FIELDS.into_iter().chain(flags::names());
        let fields = node.fields(&known.collect::<Vec<_>>())?;
        let machine = match fields.get("container_name") {
            Some(name) => name.text()?,
            None => format!("{}-{name}", around.project),
        };
        let mut line: Vec<String> = ["run", "-d", "--name", &machine].map(str::to_string).into();
        let networks = add_networks(&mut line, name, &fields, around)?;
        add_variables(&mut line, &fields, around)?;
        add_limits(&mut line, &fields)?;
        for port in fields.get("ports").iter().flat_map(|ports| ports.items()) {
            line.extend(["-p".into(), port_flag(&port)?]);
        }
        for volume in fields.get("volumes").iter().flat_map(|all| all.items()) {
            line.extend(volume_flag(&volume, around)?);
        }
        flags::add(&mut line, &fields)?;
        let healthcheck = healthcheck::add(&mut line, fields.get("healthcheck"))?;
        add_program(&mut line, node, &fields)?;
        Ok(Self {
            name: name.into(),
            machine,
            arguments: line,
            depends_on: depends_on(&fields)?,
            can_be_healthy: match healthcheck {
                Healthcheck::OfFile => true,
                Healthcheck::OfImage => fields.contains_key("image"),
                Healthcheck::Off => false,
            },
            networks,
        })
    }
}

fn texts(fields: &Fields, name: &str) -> Result<Vec<String>, String> {
    fields.get(name).map_or(Ok(Vec::new()), Node::texts)
}

/// The networks that it is on, with its names there.
fn add_networks(
    line: &mut Vec<String>,
    service: &str,
    fields: &Fields,
    around: &Surroundings,
) -> Result<Vec<String>, String> {
    if let Some(mode) = fields.get("network_mode") {
        match mode.text()?.as_str() {
            own @ ("none" | "bridge") => line.extend(["--net".into(), own.into()]),
            _ => mode.refuse(),
        }
        return Ok(Vec::new());
    }
    let networks = match fields.get("networks") {
        None => vec![(DEFAULT.to_string(), None)],
        Some(node) if node.is_mapping() => {
            let entries = node.entries()?.into_iter();
            entries.map(|(name, node)| (name, Some(node))).collect()
        }
        Some(node) => node.texts()?.into_iter().map(|name| (name, None)).collect(),
    };
    let mut aliases = vec![service.to_string()];
    for (number, (name, node)) in networks.iter().enumerate() {
        let real = around.networks.get(name);
        let real = real.ok_or_else(|| format!("{service} is on {name}, which is no network."))?;
        line.extend(["--net".into(), real.clone()]);
        let Some(node) = node else { continue };
        let fields = node.fields(&["aliases", "ipv4_address"])?;
        aliases.extend(texts(&fields, "aliases")?);
        if let Some(address) = fields.get("ipv4_address") {
            match number {
                0 => line.extend(["--ip".into(), address.text()?]),
                _ => address.refuse_as(&format!("{} on a further network", address.path)),
            }
        }
    }
    if !networks.is_empty() {
        let mut seen = BTreeSet::new();
        aliases.retain(|alias| seen.insert(alias.clone()));
        let aliases = aliases.into_iter();
        line.extend(aliases.flat_map(|alias| ["--network-alias".into(), alias]));
    }
    Ok(networks.into_iter().map(|(name, _)| name).collect())
}

/// Variables of files first, so that those of the service count more.
fn add_variables(
    line: &mut Vec<String>,
    fields: &Fields,
    around: &Surroundings,
) -> Result<(), String> {
    let mut add = |variable: String| line.extend(["-e".into(), variable]);
    for file in fields
        .get("env_file")
        .iter()
        .flat_map(|files| files.items())
    {
        let (path, is_required) = match file.is_mapping() {
            false => (file.text()?, true),
            true => {
                let fields = file.fields(&["path", "required"])?;
                let path = fields
                    .get("path")
                    .ok_or_else(|| file.wrong("a file's path"))?;
                (
                    path.text()?,
                    fields.get("required").map_or(Ok(true), Node::flag)?,
                )
            }
        };
        let path = around.folder.join(path);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let all = variables::parse(&text).into_iter();
                all.for_each(|(name, value)| add(format!("{name}={value}")));
            }
            Err(_) if !is_required => {}
            Err(error) => return Err(format!("{} cannot be read: {error}.", path.display())),
        }
    }
    let Some(node) = fields.get("environment") else {
        return Ok(());
    };
    if node.is_list() {
        node.texts()?.into_iter().for_each(add);
        return Ok(());
    }
    for (name, value) in node.entries()? {
        match value.is_null() {
            true => add(name),
            false => add(format!("{name}={}", value.text()?)),
        }
    }
    Ok(())
}

/// `deploy.resources.limits`, and what it was called before.
fn add_limits(line: &mut Vec<String>, fields: &Fields) -> Result<(), String> {
    let (mut memory, mut cpus) = (
        fields.get("mem_limit").cloned(),
        fields.get("cpus").cloned(),
    );
    if let Some(deploy) = fields.get("deploy") {
        let deploy = deploy.fields(&["resources", "replicas"])?;
        if let Some(replicas) = deploy.get("replicas")
            && replicas.text()? != "1"
        {
            replicas.refuse();
        }
        if let Some(resources) = deploy.get("resources")
            && let Some(limits) = resources.fields(&["limits"])?.get("limits")
        {
            let limits = limits.fields(&["memory", "cpus"])?;
            memory = limits.get("memory").cloned().or(memory);
            cpus = limits.get("cpus").cloned().or(cpus);
        }
    }
    if let Some(memory) = memory {
        let text = memory.text()?;
        let plain = text.trim_end_matches(['b', 'B']);
        let has_unit = plain.ends_with(|c: char| c.is_ascii_alphabetic());
        let size = if has_unit { plain.into() } else { text };
        line.extend(["-m".into(), size]);
    }
    if let Some(cpus) = cpus {
        let count: f64 = cpus.text()?.parse().map_err(|_| cpus.wrong("a number"))?;
        // A machine has whole ones.
        line.extend(["--cpus".into(), count.ceil().max(1.0).to_string()]);
    }
    Ok(())
}

/// The image, or a program of the host, and its arguments.
fn add_program(line: &mut Vec<String>, node: &Node, fields: &Fields) -> Result<(), String> {
    let words = |name| match fields.get(name) {
        Some(node) if node.is_list() => node.texts(),
        Some(node) => {
            let text = node.text()?;
            shlex::split(&text).ok_or_else(|| node.wrong("a line whose quotes are closed"))
        }
        None => Ok(Vec::new()),
    };
    let (mut entrypoint, command) = (words("entrypoint")?, words("command")?);
    if let Some(image) = fields.get("image") {
        let mut before = Vec::new();
        if !entrypoint.is_empty() {
            line.extend(["--entrypoint".into(), entrypoint.remove(0)]);
            before = entrypoint;
        }
        line.push(of_store(image.text()?));
        line.extend(before);
        line.extend(command);
        return Ok(());
    }
    let program = [entrypoint, command].concat();
    if program.is_empty() {
        let words = "has neither an image nor a command, which may be a program of this host";
        return Err(format!("{} {words}.", node.path));
    }
    line.extend(program);
    Ok(())
}

/// The name with a tag, so that it never means a program of the host that is called the same.
fn of_store(image: String) -> String {
    match image.parse() {
        Ok(Reference::Stored(name)) => name.to_string(),
        _ => image,
    }
}

/// `-p`.
fn port_flag(node: &Node) -> Result<String, String> {
    if !node.is_mapping() {
        let text = node.text()?;
        if !text.contains(':') || text.contains('-') {
            node.refuse_as(&format!("{} without one port of the host", node.path));
        }
        return Ok(text);
    }
    const FIELDS: [&str; 7] = [
        "target",
        "published",
        "host_ip",
        "protocol",
        "mode",
        "name",
        "app_protocol",
    ];
    let fields = node.fields(&FIELDS)?;
    let text = |name: &str| fields.get(name).map(Node::text).transpose();
    let (target, published) = (text("target")?, text("published")?);
    let both = target.zip(published);
    let (target, published) = both.ok_or_else(|| node.wrong("a port with target and published"))?;
    let ip = text("host_ip")?
        .map(|ip| format!("{ip}:"))
        .unwrap_or_default();
    let protocol = text("protocol")?.map(|protocol| format!("/{protocol}"));
    Ok(format!(
        "{ip}{published}:{target}{}",
        protocol.unwrap_or_default()
    ))
}

/// `-v` or `--tmpfs`.
fn volume_flag(node: &Node, around: &Surroundings) -> Result<Vec<String>, String> {
    if node.is_mapping() {
        return long_volume_flag(node, around);
    }
    let text = node.text()?;
    let Some((source, rest)) = text.split_once(':') else {
        node.refuse_as(&format!("{} without a name", node.path));
        return Ok(Vec::new());
    };
    Ok(vec![
        "-v".into(),
        format!("{}:{rest}", place(source, node, around)?),
    ])
}

fn long_volume_flag(node: &Node, around: &Surroundings) -> Result<Vec<String>, String> {
    let fields = node.fields(&["type", "source", "target", "read_only"])?;
    let text = |name: &str| fields.get(name).map(Node::text).transpose();
    let target = text("target")?.ok_or_else(|| node.wrong("a mount with a target"))?;
    if text("type")?.as_deref() == Some("tmpfs") {
        return Ok(vec!["--tmpfs".into(), target]);
    }
    let source = text("source")?.ok_or_else(|| node.wrong("a mount with a source"))?;
    let access = match fields.get("read_only").map_or(Ok(false), Node::flag)? {
        true => ":ro",
        false => "",
    };
    let source = place(&source, node, around)?;
    Ok(vec!["-v".into(), format!("{source}:{target}{access}")])
}

/// A folder of the host, or a volume of the project.
fn place(source: &str, node: &Node, around: &Surroundings) -> Result<String, String> {
    if source.starts_with(['.', '/']) {
        let path = around.folder.join(source);
        return Ok(path.to_string_lossy().into_owned());
    }
    let real = around.volumes.get(source).cloned();
    real.ok_or_else(|| {
        format!(
            "{} names the volume {source}, which is not listed.",
            node.path
        )
    })
}

fn depends_on(fields: &Fields) -> Result<BTreeMap<String, Condition>, String> {
    let Some(node) = fields.get("depends_on") else {
        return Ok(BTreeMap::new());
    };
    if !node.is_mapping() {
        let names = node.texts()?.into_iter();
        return Ok(names.map(|name| (name, Condition::Started)).collect());
    }
    let entry = |(name, node): (String, Node)| {
        let fields = node.fields(&["condition"])?;
        let text = fields.get("condition").map(Node::text).transpose()?;
        let condition = match text.as_deref() {
            None | Some("service_started") => Condition::Started,
            Some("service_healthy") => Condition::Healthy,
            Some("service_completed_successfully") => Condition::Completed,
            Some(_) => return Err(node.wrong("a condition that compose has")),
        };
        Ok((name, condition))
    };
    node.entries()?.into_iter().map(entry).collect()
}
