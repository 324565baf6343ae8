//! Who owns which block and inode, and whether bitmaps and counts agree.

use super::raw::{Group, ROOT, Raw};
use super::tree::Tree;

const JOURNAL: u32 = 8;
const INODE_UNINIT: u16 = 1;
const BLOCK_UNINIT: u16 = 2;
const KIND_MASK: u16 = 0xf000;
const DIRECTORY: u16 = 0x4000;

pub fn check(raw: &Raw<'_>, tree: &Tree) -> Result<(), String> {
    if raw.orphans() != 0 {
        return Err(format!("inode {} is still an orphan", raw.orphans()));
    }
    let mut owned = Owned(vec![false; raw.blocks as usize]);
    let (mut free_blocks, mut free_inodes) = (0, 0);
    for number in 0..raw.groups() {
        let group = raw.group(number);
        let own = [
            (raw.group_blocks(number).start, raw.backup_blocks(number)),
            (group.block_bitmap, 1),
            (group.inode_bitmap, 1),
            (group.inode_table, raw.inode_table_blocks()),
        ];
        for (first, len) in own {
            owned.claim(first, len)?;
        }
        free_blocks += u64::from(group.free_blocks);
        free_inodes += group.free_inodes;
    }
    let used = inodes(raw, tree, &mut owned)?;
    for number in 0..raw.groups() {
        let group = raw.group(number);
        check_blocks(raw, number, &group, &owned)?;
        check_inodes(raw, number, &group, &used)?;
    }
    match raw.free() == (free_blocks, free_inodes) {
        true => Ok(()),
        false => Err("the superblock counts other free ones than the groups".into()),
    }
}

/// Blocks that have an owner.
struct Owned(Vec<bool>);

impl Owned {
    fn claim(&mut self, first: u64, len: u64) -> Result<(), String> {
        for block in first..first + len {
            match self.0.get_mut(block as usize) {
                Some(is_owned) if !*is_owned => *is_owned = true,
                Some(_) => return Err(format!("block {block} has two owners")),
                None => return Err(format!("block {block} does not exist")),
            }
        }
        Ok(())
    }
}

/// An inode in use: its number, and whether it is a directory.
type Used = Vec<(u32, bool)>;

/// All inodes that names lead to, with their blocks, and that their counts of names are right.
fn inodes(raw: &Raw<'_>, tree: &Tree, owned: &mut Owned) -> Result<Used, String> {
    let (mut links, folders) = (tree.links(), tree.subfolders());
    links.insert(ROOT, 1);
    links.insert(JOURNAL, 1);
    let mut used = Vec::new();
    for (number, names) in links {
        let inode = raw.inode(number)?;
        let is_directory = inode.mode & KIND_MASK == DIRECTORY;
        let wanted = match is_directory {
            true => 2 + folders.get(&number).copied().unwrap_or(0),
            false => names,
        };
        if u32::from(inode.links) != wanted {
            return Err(format!(
                "inode {number} has {} links and {wanted} names",
                inode.links
            ));
        }
        let mut nodes = Vec::new();
        for extent in raw.extents(&inode, &mut |node| nodes.push(node))? {
            owned.claim(extent.physical, extent.len)?;
        }
        nodes
            .into_iter()
            .try_for_each(|node| owned.claim(node, 1))?;
        if inode.attributes != 0 {
            owned.claim(inode.attributes, 1)?;
        }
        used.push((number, is_directory));
    }
    Ok(used)
}

fn is_set(bitmap: &[u8], bit: u64) -> bool {
    bitmap[bit as usize / 8] >> (bit % 8) & 1 != 0
}

fn check_blocks(raw: &Raw<'_>, number: u32, group: &Group, owned: &Owned) -> Result<(), String> {
    let range = raw.group_blocks(number);
    let bitmap = raw.block(group.block_bitmap);
    let mut free = 0;
    for block in range.clone() {
        let is_owned = owned.0[block as usize];
        free += u32::from(!is_owned);
        let is_marked = match group.flags & BLOCK_UNINIT {
            0 => is_set(&bitmap, block - range.start),
            _ => is_owned,
        };
        if is_marked != is_owned {
            let what = if is_owned { "owned" } else { "nobody's" };
            return Err(format!("block {block} is {what}, and the bitmap differs"));
        }
    }
    match free == group.free_blocks {
        true => Ok(()),
        false => Err(format!("group {number} counts its free blocks wrong")),
    }
}

fn check_inodes(raw: &Raw<'_>, number: u32, group: &Group, used: &Used) -> Result<(), String> {
    let first = number * raw.inodes_per_group + 1;
    let mine = |inode: &&(u32, bool)| (first..first + raw.inodes_per_group).contains(&inode.0);
    let bitmap = raw.block(group.inode_bitmap);
    let is_fresh = group.flags & INODE_UNINIT != 0;
    let reserved = |inode: u32| inode < raw.first_inode;
    for inode in first..first + raw.inodes_per_group {
        let is_used = reserved(inode) || used.binary_search_by_key(&inode, |used| used.0).is_ok();
        let is_marked = !is_fresh && is_set(&bitmap, u64::from(inode - first));
        if is_used != is_marked {
            let what = if is_used { "used" } else { "nobody's" };
            return Err(format!("inode {inode} is {what}, and the bitmap differs"));
        }
    }
    let last_reserved = raw.first_inode - 1;
    let others = used.iter().filter(mine).filter(|inode| !reserved(inode.0));
    let reserved_here = if number == 0 { last_reserved } else { 0 };
    let count = others.count() as u32 + reserved_here;
    let directories = used.iter().filter(mine).filter(|inode| inode.1).count() as u32;
    match (
        count + group.free_inodes == raw.inodes_per_group,
        directories == group.directories,
    ) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("group {number} counts its free inodes wrong")),
        (_, false) => Err(format!("group {number} counts its directories wrong")),
    }
}
