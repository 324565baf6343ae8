//! A compose file as a whole.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::document::{Document, Fields, Node};
use super::order::order;
use super::service::{Condition, DEFAULT, Service, Surroundings};
use super::variables::Variables;
use crate::flags::{NetworkCreateFlags, RunFlags, Subnet, VolumeName};

/// Where a file is looked for, in this order.
const NAMES: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
];

/// What a file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its name, with which names of what it makes begin.
    pub name: String,
    /// Where the file lies.
    pub folder: PathBuf,
    /// Its services, each after those that it depends on.
    pub services: Vec<Service>,
    /// Networks that services are on and that are the project's own.
    pub networks: Vec<OwnNetwork>,
    /// Real names of the project's own volumes.
    pub volumes: Vec<String>,
}

/// A network that the project makes and removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNetwork {
    /// Its real name.
    pub name: String,
    /// Its addresses, if the file says them.
    pub subnet: Option<Subnet>,
    /// Whether it has IPv6 too.
    pub ipv6: bool,
}

/// The file that `given` names, or the one that is here.
///
/// Errors: a sentence.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = given {
        return Ok(path.into());
    }
    let here = NAMES.iter().map(PathBuf::from).find(|path| path.exists());
    here.ok_or_else(|| "There is no compose.yaml here: name a file with -f.".into())
}

impl Project {
    /// Reads the file at `path`; `name` is the project's, if it is given.
    ///
    /// Errors: a sentence.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self, String> {
        let unreadable = |error| format!("{} cannot be read: {error}.", path.display());
        let path = fs::canonicalize(path).map_err(unreadable)?;
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let variables = fs::read_to_string(folder.join(".env")).unwrap_or_default();
        let project = Self::parse(&text, folder, name, Variables::new(&variables));
        project.map_err(|sentence| format!("{}: {sentence}", path.display()))
    }

    fn parse(
        text: &str,
        folder: &Path,
        name: Option<&str>,
        variables: Variables,
    ) -> Result<Self, String> {
        let document = Document::parse(text, variables)?;
        let root = document.root();
        let fields = root.fields(&["name", "version", "services", "networks", "volumes"])?;
        let name = project_name(name, &fields, folder)?;
        let networks = networks(&name, fields.get("networks"))?;
        let volumes = volumes(&name, fields.get("volumes"))?;
        let real = networks.iter();
        let around = Surroundings {
            project: &name,
            folder,
            networks: &real
                .map(|(key, (own, _))| (key.clone(), own.name.clone()))
                .collect(),
            volumes: &volumes
                .iter()
                .map(|(key, (real, _))| (key.clone(), real.clone()))
                .collect(),
        };
        let nodes = fields
            .get("services")
            .map_or(Ok(Fields::new()), Node::entries)?;
        let services = nodes.iter();
        let services = services.map(|(name, node)| Service::read(name, node, &around));
        let services: Vec<Service> = services.collect::<Result<_, _>>()?;
        document.check()?;
        let services = in_order(services)?;
        services.iter().try_for_each(check)?;
        let used = |key: &String| services.iter().any(|own| own.networks.contains(key));
        let own = networks
            .iter()
            .filter(|(key, (_, is_own))| *is_own && used(key));
        let own_volumes = volumes.values().filter(|(_, is_own)| *is_own);
        Ok(Self {
            folder: folder.into(),
            networks: own.map(|(_, (network, _))| network.clone()).collect(),
            volumes: own_volumes.map(|(real, _)| real.clone()).collect(),
            name,
            services,
        })
    }
}

/// Whether `sietch run` takes the line, and conditions can come about.
fn check(service: &Service) -> Result<(), String> {
    let line = std::iter::once("sietch".to_string()).chain(service.arguments.iter().cloned());
    RunFlags::of_line(line).map(drop).map_err(|error| {
        let words = error
            .lines()
            .next()
            .unwrap_or("")
            .trim_start_matches("error: ");
        format!(
            "services.{}: {}.",
            service.name,
            words.trim_end_matches('.')
        )
    })
}

fn in_order(services: Vec<Service>) -> Result<Vec<Service>, String> {
    for service in &services {
        for (other, condition) in &service.depends_on {
            let other = services.iter().find(|own| own.name == *other);
            let never = other.filter(|own| !own.can_be_healthy);
            if *condition == Condition::Healthy
                && let Some(other) = never
            {
                return Err(format!(
                    "{} waits until {} is healthy, which has no healthcheck.",
                    service.name, other.name
                ));
            }
        }
    }
    let all = services.iter();
    let wanted = all.map(|own| (own.name.clone(), own.depends_on.keys().cloned().collect()));
    let names = order(&wanted.collect())?;
    let position = |service: &Service| names.iter().position(|name| *name == service.name);
    let mut services = services;
    services.sort_by_key(position);
    Ok(services)
}

/// The name that is given, or the folder's, as far as it can be one.
fn project_name(given: Option<&str>, fields: &Fields, folder: &Path) -> Result<String, String> {
    let of_environment = env::var("COMPOSE_PROJECT_NAME").ok();
    let given = given.map(str::to_string).or(of_environment);
    let of_file = fields.get("name").map(Node::text).transpose()?;
    let of_folder = || {
        folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let name = given
        .or(of_file)
        .unwrap_or_else(of_folder)
        .to_ascii_lowercase();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(is_plain).collect();
    match name.trim_start_matches(['-', '_']) {
        "" => Err("The project needs a name: give -p NAME.".into()),
        name => Ok(name.into()),
    }
}

/// Networks by their names in the file, and whether they are the project's own.
fn networks(
    project: &str,
    node: Option<&Node>,
) -> Result<BTreeMap<String, (OwnNetwork, bool)>, String> {
    let default = OwnNetwork {
        name: format!("{project}_{DEFAULT}"),
        subnet: None,
        ipv6: false,
    };
    let mut networks = BTreeMap::from([(DEFAULT.to_string(), (default, true))]);
    for (key, node) in node.map_or(Ok(Fields::new()), Node::entries)? {
        let fields = node.fields(&["name", "external", "driver", "ipam", "enable_ipv6"])?;
        if let Some(driver) = fields.get("driver")
            && driver.text()? != "bridge"
        {
            driver.refuse();
        }
        let is_external = fields.get("external").map_or(Ok(false), Node::flag)?;
        let real = real_name(project, &key, &fields, is_external)?;
        let wrong = |words| format!("{}: {words}.", node.path);
        let network = OwnNetwork {
            name: NetworkCreateFlags::parse_name(&real).map_err(wrong)?,
            subnet: fields.get("ipam").map_or(Ok(None), subnet)?,
            ipv6: fields.get("enable_ipv6").map_or(Ok(false), Node::flag)?,
        };
        networks.insert(key, (network, !is_external));
    }
    Ok(networks)
}

/// `ipam`'s one subnet.
fn subnet(node: &Node) -> Result<Option<Subnet>, String> {
    let fields = node.fields(&["config"])?;
    let Some(config) = fields.get("config") else {
        return Ok(None);
    };
    let mut subnets = Vec::new();
    for item in config.items() {
        if let Some(subnet) = item.fields(&["subnet"])?.get("subnet") {
            let text = subnet.text()?;
            let wrong =
                |words: String| format!("{}: {}.", subnet.path, words.trim_end_matches('.'));
            subnets.push(text.parse::<Subnet>().map_err(wrong)?);
        }
    }
    if subnets.len() > 1 {
        config.refuse_as(&format!("{} with more than one subnet", config.path));
    }
    Ok(subnets.first().copied())
}

/// Volumes by their names in the file: the real name, and whether it is the project's own.
fn volumes(project: &str, node: Option<&Node>) -> Result<BTreeMap<String, (String, bool)>, String> {
    let volume = |(key, node): (String, Node)| {
        let fields = node.fields(&["name", "external", "driver"])?;
        if let Some(driver) = fields.get("driver")
            && driver.text()? != "local"
        {
            driver.refuse();
        }
        let is_external = fields.get("external").map_or(Ok(false), Node::flag)?;
        let real = real_name(project, &key, &fields, is_external)?;
        let wrong = |words| format!("{}: {words}.", node.path);
        let real: VolumeName = real.parse().map_err(wrong)?;
        Ok((key, (real.to_string(), !is_external)))
    };
    let entries = node.map_or(Ok(Fields::new()), Node::entries)?;
    entries.into_iter().map(volume).collect()
}

/// What a network or a volume is called beyond the file; not yet looked at.
fn real_name(
    project: &str,
    key: &str,
    fields: &Fields,
    is_external: bool,
) -> Result<String, String> {
    match (fields.get("name"), is_external) {
        (Some(name), _) => name.text(),
        (None, true) => Ok(key.into()),
        (None, false) => Ok(format!("{project}_{key}")),
    }
}

#[cfg(test)]
mod tests;
