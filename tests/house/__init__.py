"""Tests of the house rather than of the product: sizes, words, documents, requirements."""
