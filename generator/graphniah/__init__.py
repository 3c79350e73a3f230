"""GraphNIAH: citation subgraphs hidden in long prompts, with questions of reachability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gniah.records.lazy import lazy_names

if TYPE_CHECKING:
    from gniah.generator.graphniah.auditing import AuditReport, Violation, audit, audit_pool
    from gniah.generator.graphniah.building import Built, ExampleBuilder
    from gniah.generator.graphniah.experiments import ListSettings, slots
    from gniah.generator.graphniah.materials import Materials
    from gniah.generator.graphniah.none_option import none_variant, write_none_variants
    from gniah.generator.graphniah.path_sampling import SampledPool, sample_pools
    from gniah.generator.graphniah.picture import picture_of
    from gniah.generator.graphniah.plans import Plan, Sources, make_plan, open_materials, sources_for
    from gniah.generator.graphniah.pool_files import PathPool, pool_folder
    from gniah.generator.graphniah.production import Produced, build_examples, merge, produce
    from gniah.generator.graphniah.prompts import TemplateSet, load_templates
    from gniah.generator.graphniah.publishing import Publication, publish_pool
    from gniah.generator.graphniah.showing import Step, proof, shown
    from gniah.generator.graphniah.text_solver import solve
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "auditing": ("AuditReport", "Violation", "audit", "audit_pool"),
            "building": ("Built", "ExampleBuilder"),
            "experiments": ("ListSettings", "slots"),
            "materials": ("Materials",),
            "none_option": ("none_variant", "write_none_variants"),
            "path_sampling": ("SampledPool", "sample_pools"),
            "picture": ("picture_of",),
            "plans": ("Plan", "Sources", "make_plan", "open_materials", "sources_for"),
            "pool_files": ("PathPool", "pool_folder"),
            "production": ("Produced", "build_examples", "merge", "produce"),
            "prompts": ("TemplateSet", "load_templates"),
            "publishing": ("Publication", "publish_pool"),
            "showing": ("Step", "proof", "shown"),
            "text_solver": ("solve",),
        },
    )

__all__ = [
    "AuditReport",
    "Built",
    "ExampleBuilder",
    "ListSettings",
    "Materials",
    "PathPool",
    "Plan",
    "Produced",
    "Publication",
    "SampledPool",
    "Sources",
    "Step",
    "TemplateSet",
    "Violation",
    "audit",
    "audit_pool",
    "build_examples",
    "load_templates",
    "make_plan",
    "merge",
    "none_variant",
    "open_materials",
    "picture_of",
    "pool_folder",
    "produce",
    "proof",
    "publish_pool",
    "sample_pools",
    "shown",
    "slots",
    "solve",
    "sources_for",
    "write_none_variants",
]
