"""Every number on which a decision of `auto` depends, with its reason or the ablation that chose it.

All of them are dimensionless: ratios of differences of F to noise, of lengths to lengths, of calls to calls. Nothing
here is compared with F itself, so that no decision depends on the unit or the offset of F, nor on the unit of x.
Each part of `auto` has one frozen dataclass, and one instance of it with the values in use.
"""
