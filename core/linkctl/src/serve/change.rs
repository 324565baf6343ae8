//! Requests that change something.

use link::flow::{FlowError, FlowProps, Rule};
use link::group::RingsWanted;
use link::links::{Class, LinkError, MacSource, RANDOM_PREFIX, VnicSpec};
use link::vlan::VlanId;
use link::{LinkId, Links};

use super::find;
use crate::answer::{Answer, Refusal};
use crate::request::{NewMac, NewVnic, Request, Setting};

/// Changes that take one call.
pub fn make(links: &mut Links, change: &Request) -> Result<Answer, Refusal> {
    match change {
        Request::CreateVlan { name, over, vid } => {
            return create_vlan(links, name.as_deref(), over, *vid);
        }
        Request::CreateEtherstub { name } => {
            let made = links.create_etherstub(name).map_err(Refusal::Link)?;
            return created(links, made);
        }
        Request::Delete { link, class } => delete(links, link, *class)?,
        Request::SetProp { link, setting } => {
            let id = find(links, link)?;
            set_prop(links, id, setting)?;
        }
        Request::ResetProp { link, name } => {
            let id = find(links, link)?;
            links
                .reset_prop(id, name)
                .map_err(|error| refused(name, error))?;
        }
        Request::AddFlow {
            name,
            link,
            attributes,
            settings,
        } => add_flow(links, name, link, attributes, settings)?,
        Request::RemoveFlow { flow } => links.remove_flow(flow).map_err(Refusal::Link)?,
        Request::RemoveFlows { link } => {
            let id = find(links, link)?;
            links.remove_flows_of(id).map_err(Refusal::Link)?;
        }
        Request::SetFlowProp { flow, setting } => links
            .set_flow_prop(flow, &setting.name, &setting.value)
            .map_err(|error| flow_refused(&setting.name, error))?,
        Request::ResetFlowProp { flow, name } => links
            .reset_flow_prop(flow, name)
            .map_err(|error| flow_refused(name, error))?,
        // `serve` brings no others.
        _ => return Err(Refusal::Malformed),
    }
    Ok(Answer::Done)
}

fn refused(name: &str, error: LinkError) -> Refusal {
    Refusal::Setting {
        name: name.into(),
        error,
    }
}

/// A flow that is missing is no fault of the property.
fn flow_refused(name: &str, error: LinkError) -> Refusal {
    match error {
        LinkError::Flow(FlowError::NoSuchFlow) => Refusal::Link(error),
        error => refused(name, error),
    }
}

fn set_prop(links: &mut Links, id: LinkId, setting: &Setting) -> Result<(), Refusal> {
    links
        .set_prop(id, &setting.name, &setting.value)
        .map_err(|error| refused(&setting.name, error))
}

fn created(links: &Links, id: LinkId) -> Result<Answer, Refusal> {
    let info = links.info(id).ok_or(Refusal::Link(LinkError::NotFound))?;
    Ok(Answer::Created {
        name: info.name,
        mac: info.mac,
    })
}

/// With its properties or not at all.
pub fn create_vnic(links: &mut Links, vnic: &NewVnic, bits: u64) -> Result<Answer, Refusal> {
    let mac = match vnic.mac {
        NewMac::Given(mac) => MacSource::Given(mac),
        NewMac::Random { prefix } => MacSource::Random {
            prefix: prefix.unwrap_or(RANDOM_PREFIX),
            bits,
        },
    };
    let spec = VnicSpec {
        name: &vnic.name,
        over: find(links, &vnic.over)?,
        mac,
        vid: vnic.vid,
        rings: RingsWanted::Any,
    };
    let id = links.create_vnic(&spec).map_err(Refusal::Link)?;
    for setting in &vnic.settings {
        if let Err(refusal) = set_prop(links, id, setting) {
            // Nobody has seen it yet, so nobody holds it.
            let _ = links.delete(id);
            return Err(refusal);
        }
    }
    created(links, id)
}

fn create_vlan(
    links: &mut Links,
    name: Option<&str>,
    over: &str,
    vid: VlanId,
) -> Result<Answer, Refusal> {
    let over = find(links, over)?;
    let id = links.create_vlan(name, over, vid).map_err(Refusal::Link)?;
    created(links, id)
}

fn delete(links: &mut Links, name: &str, class: Class) -> Result<(), Refusal> {
    let id = find(links, name)?;
    match links.info(id) {
        Some(info) if info.class == class => links.delete(id).map_err(Refusal::Link),
        _ => Err(Refusal::NotA { class }),
    }
}

fn add_flow(
    links: &mut Links,
    name: &str,
    link: &str,
    attributes: &str,
    settings: &[Setting],
) -> Result<(), Refusal> {
    let link = find(links, link)?;
    let rule = Rule::parse(attributes).map_err(|error| Refusal::Link(LinkError::Flow(error)))?;
    let mut props = FlowProps::default();
    for Setting { name, value } in settings {
        props
            .set(name, value)
            .map_err(|error| refused(name, LinkError::Flow(error)))?;
    }
    links
        .add_flow(link, name, rule, props)
        .map_err(Refusal::Link)
}
