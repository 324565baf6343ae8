//! Questions that several commands ask.

use linkctl::{Answer, FlowRow, KstatBlock, LinkRow, PropRow, Request, Statistics};

use crate::{Kernel, refusals};

/// The answer, if it is not a refusal.
pub fn ask(kernel: &mut dyn Kernel, request: &Request) -> Result<Answer, String> {
    match kernel.call(request)? {
        Answer::Refused(refusal) => Err(refusal.to_string()),
        answer => Ok(answer),
    }
}

/// That it is done.
pub fn order(kernel: &mut dyn Kernel, request: &Request) -> Result<(), String> {
    match ask(kernel, request)? {
        Answer::Done => Ok(()),
        _ => Err(nonsense()),
    }
}

/// What to say of an answer to another question.
pub fn nonsense() -> String {
    "the kernel answers another question".into()
}

/// All links.
pub fn links(kernel: &mut dyn Kernel) -> Result<Vec<LinkRow>, String> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let Answer::Links { rows, next } = ask(kernel, &Request::Links { from })? else {
            return Err(nonsense());
        };
        all.extend(rows);
        match next {
            Some(next) if next > from => from = next,
            Some(_) => return Err(nonsense()),
            None => return Ok(all),
        }
    }
}

/// All links, or the one of that name, which must be there.
pub fn links_named(kernel: &mut dyn Kernel, name: Option<&str>) -> Result<Vec<LinkRow>, String> {
    let mut all = links(kernel)?;
    if let Some(name) = name {
        all.retain(|link| link.name == name);
        if all.is_empty() {
            return Err(refusals::no_such_link(name));
        }
    }
    Ok(all)
}

/// All flows.
pub fn flows(kernel: &mut dyn Kernel) -> Result<Vec<FlowRow>, String> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let Answer::Flows { rows, next } = ask(kernel, &Request::Flows { from })? else {
            return Err(nonsense());
        };
        all.extend(rows);
        match next {
            Some(next) if next > from => from = next,
            Some(_) => return Err(nonsense()),
            None => return Ok(all),
        }
    }
}

/// The flows of a link, or the one of that name, which must be there, or all.
pub fn flows_named(
    kernel: &mut dyn Kernel,
    link: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<FlowRow>, String> {
    if let Some(link) = link {
        links_named(kernel, Some(link))?;
    }
    let mut all = flows(kernel)?;
    all.retain(|flow| link.is_none_or(|link| flow.link == link));
    if let Some(name) = name {
        all.retain(|flow| flow.name == name);
        if all.is_empty() {
            return Err(refusals::no_such_flow(name));
        }
    }
    Ok(all)
}

/// The properties of a link.
pub fn props(kernel: &mut dyn Kernel, link: &str) -> Result<Vec<PropRow>, String> {
    match ask(kernel, &Request::Props { link: link.into() })? {
        Answer::Props(rows) => Ok(rows),
        _ => Err(nonsense()),
    }
}

/// All statistics of a link, by blocks.
pub fn kstats(kernel: &mut dyn Kernel, link: &str) -> Result<Vec<KstatBlock>, String> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let link = link.into();
        let Answer::Kstats { blocks, next } = ask(kernel, &Request::Kstats { link, from })? else {
            return Err(nonsense());
        };
        all.extend(blocks);
        match next {
            Some(next) if next > from => from = next,
            Some(_) => return Err(nonsense()),
            None => return Ok(all),
        }
    }
}

/// What a link or a flow has carried.
pub fn statistics(kernel: &mut dyn Kernel, request: &Request) -> Result<Statistics, String> {
    match ask(kernel, request)? {
        Answer::Statistics(counts) | Answer::FlowStatistics(counts) => Ok(counts),
        _ => Err(nonsense()),
    }
}
