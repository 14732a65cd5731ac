"""`explore`: which hardware configuration suits models on a board.

SearchSpace     what is chosen of a configuration, and what follows from it      (space.py)
Workload        models converted once, and their exact cycles on a configuration (workload.py)
fitted          memories as large as the models need                             (sizing.py)
DesignPoint     a configuration with its cycles and predicted resources          (point.py)
front           the points that no other is better than                          (front.py)
Search          the points of a study, in an order that workers do not change    (search.py)
StudyFile       every point of a study, on disk                                  (study.py)
BuildState      synthesis, place and route of points of the front                (stages.py)
Campaign        a search on a pool, its file, its confirmed front                (campaign.py)
predicted_mhz   the clock of a configuration                                     (clock.py)
page            the report                                                       (report.py)
"""
