//! The three-way merge of trees, without IO.
