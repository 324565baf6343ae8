//! Flows by name.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Flow, LINKS_MAX, Link, LinkError, Links};
use crate::bandwidth::{Bandwidth, Limit};
use crate::flow::{FlowError, FlowId, FlowProps, Rule};
use crate::table::LinkId;

/// Flows of one link.
pub const FLOWS_MAX: usize = 64;
/// Bytes of a flow's name.
const NAME_BYTES_MAX: usize = 127;
/// Flows of a machine.
pub const ALL_FLOWS_MAX: usize = 4096;

const _: () = assert!(
    ALL_FLOWS_MAX + LINKS_MAX as usize <= u16::MAX as usize,
    "queues of one port are numbered in 16 bits"
);

/// A line of `flowadm show-flow`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowInfo {
    /// Which.
    pub id: FlowId,
    /// Its name.
    pub name: String,
    /// Its link.
    pub link: LinkId,
    /// What it matches.
    pub rule: Rule,
    /// What its traffic gets.
    pub props: FlowProps,
}

/// Buckets for both directions.
pub(super) fn limits_of(maxbw: Option<Bandwidth>) -> Option<[Arc<Limit>; 2]> {
    maxbw.map(|limit| core::array::from_fn(|_| Arc::new(Limit::new(limit))))
}

impl Links {
    /// Gives some traffic of a link properties of its own.
    pub fn add_flow(
        &mut self,
        link: LinkId,
        name: &str,
        rule: Rule,
        props: FlowProps,
    ) -> Result<(), LinkError> {
        if !is_name(name) {
            return Err(LinkError::Flow(FlowError::BadName));
        }
        if self.flow_at(name).is_some() {
            return Err(LinkError::Flow(FlowError::NameTaken));
        }
        if self.flows().count() >= ALL_FLOWS_MAX {
            return Err(LinkError::Flow(FlowError::TooMany));
        }
        let id = FlowId(self.flows_made);
        let state = self.link_mut(link).ok_or(LinkError::NotFound)?;
        check_rule(state, &rule).map_err(LinkError::Flow)?;
        state.flows.push(Flow {
            id,
            name: name.into(),
            rule,
            props,
            limits: limits_of(props.maxbw),
        });
        let over = state.over;
        self.flows_made += 1;
        self.publish(over);
        Ok(())
    }

    /// Removes a flow.
    pub fn remove_flow(&mut self, name: &str) -> Result<(), LinkError> {
        self.with_flow(name, |flows, at| {
            flows.remove(at);
            Ok(())
        })
    }

    /// Removes all flows of a link.
    pub fn remove_flows_of(&mut self, link: LinkId) -> Result<(), LinkError> {
        let state = self.link_mut(link).ok_or(LinkError::NotFound)?;
        state.flows.clear();
        let over = state.over;
        self.publish(over);
        Ok(())
    }

    /// Sets a flow's property from its text.
    pub fn set_flow_prop(&mut self, name: &str, prop: &str, value: &str) -> Result<(), LinkError> {
        self.with_flow(name, |flows, at| {
            flows[at].change(|props| props.set(prop, value))
        })
    }

    /// Sets a flow's property back to its default.
    pub fn reset_flow_prop(&mut self, name: &str, prop: &str) -> Result<(), LinkError> {
        self.with_flow(name, |flows, at| {
            flows[at].change(|props| props.reset(prop))
        })
    }

    /// All flows.
    pub fn flows(&self) -> impl Iterator<Item = FlowInfo> + '_ {
        self.links.iter().flat_map(|(index, generation, link)| {
            link.flows.iter().map(move |flow| FlowInfo {
                id: flow.id,
                name: flow.name.clone(),
                link: LinkId { index, generation },
                rule: flow.rule,
                props: flow.props,
            })
        })
    }

    fn flow_at(&self, name: &str) -> Option<(LinkId, usize)> {
        self.links.iter().find_map(|(index, generation, link)| {
            let at = link.flows.iter().position(|flow| flow.name == name)?;
            Some((LinkId { index, generation }, at))
        })
    }

    fn with_flow(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Vec<Flow>, usize) -> Result<(), FlowError>,
    ) -> Result<(), LinkError> {
        let found = self.flow_at(name);
        let (link, at) = found.ok_or(LinkError::Flow(FlowError::NoSuchFlow))?;
        let state = self.link_mut(link).ok_or(LinkError::NotFound)?;
        change(&mut state.flows, at).map_err(LinkError::Flow)?;
        let over = state.over;
        self.publish(over);
        Ok(())
    }
}

impl Flow {
    /// A limit that stays the same keeps its bucket.
    fn change(
        &mut self,
        change: impl FnOnce(&mut FlowProps) -> Result<(), FlowError>,
    ) -> Result<(), FlowError> {
        let old = self.props.maxbw;
        change(&mut self.props)?;
        if self.props.maxbw != old {
            self.limits = limits_of(self.props.maxbw);
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(is_sign)
}

fn check_rule(link: &Link, rule: &Rule) -> Result<(), FlowError> {
    if link.flows.len() == FLOWS_MAX {
        return Err(FlowError::TooMany);
    }
    for flow in &link.flows {
        if flow.rule.kind() != rule.kind() {
            return Err(FlowError::MixedKinds {
                existing: flow.rule.kind(),
            });
        }
        if flow.rule == *rule {
            return Err(FlowError::SameRule);
        }
    }
    Ok(())
}
