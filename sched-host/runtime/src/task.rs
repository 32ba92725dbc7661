//! Tasks: what they are made of, and their way from submission to their end.

pub(crate) mod after;
pub(crate) mod ahead;
mod bad_tasks;
pub(crate) mod bound;
pub(crate) mod cancel;
pub(crate) mod codelet;
pub(crate) mod codelets;
pub(crate) mod complete;
pub(crate) mod entry;
pub(crate) mod failure;
pub(crate) mod job;
pub(crate) mod measure;
pub(crate) mod nest;
pub(crate) mod outcomes;
pub(crate) mod parts;
pub(crate) mod private_order;
pub(crate) mod record;
pub(crate) mod scratch;
pub(crate) mod submit;
pub(crate) mod variant_counts;
pub(crate) mod verdict;
