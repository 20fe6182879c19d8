"""All studies, in the order of the report."""

from experiments import (
    ablation,
    benchmark,
    differences,
    edge_removal,
    edge_roles,
    end_to_end,
    field,
    findings,
    gkde,
    homophily,
    no_ood_labels,
    post_hoc,
    robust,
    sensitivity,
    tune,
    unknown_groups,
    visualize,
)
from experiments.support.study import Study

STUDIES: tuple[Study, ...] = (
    findings.STUDY,
    differences.STUDY,
    end_to_end.STUDY,
    robust.STUDY,
    tune.STUDY,
    post_hoc.STUDY,
    gkde.STUDY,
    field.STUDY,
    no_ood_labels.STUDY,
    unknown_groups.STUDY,
    benchmark.STUDY,
    benchmark.SCALE,
    homophily.STUDY,
    edge_roles.STUDY,
    edge_removal.STUDY,
    ablation.STUDY,
    sensitivity.STUDY,
    visualize.STUDY,
)
